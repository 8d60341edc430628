/** Where a setting's value comes from. */
export type Origin = "script" | "environment" | "catalog" | "default" | "derived" | "user";

/** What is handed in: a script as a string, or texts with settings and answers. */
export type Input =
  | string
  | {
      text?: string;
      texts?: (string | { name?: string; text: string })[];
      /** Name as in the catalog, for example "H100-SXM". */
      accelerator?: string;
      /** Settings by Megatron's names, on top of what the texts say. */
      settings?: Record<string, string | number | boolean | null>;
      /** Variables that the texts leave to their environment. */
      environment?: Record<string, string>;
      /** The words after the script in its call. */
      arguments?: string;
    };

export interface Setting {
  value: number | string | boolean | null | unknown[];
  origin: Origin;
  flag?: string;
  line?: number;
  column?: number;
  length?: number;
  file?: string;
  note?: string;
}
export interface Question {
  name: string;
  prompt: string;
  choices?: string[];
  proposal?: string;
}
export interface Diagnostic {
  severity: "error" | "warning" | "note";
  code: string;
  message: string;
  hint?: string;
  line?: number;
  column?: number;
  length?: number;
  file?: string;
}
/** A labelled value; a parent is computed from its children. */
export interface Tree {
  label: string;
  value: number;
  formula?: string;
  times?: number;
  children?: Tree[];
}
export interface RankParameters {
  pipeline_rank: number;
  tensor_rank: number;
  expert_rank: number;
  count: number;
  breakdown: Record<
    "embedding" | "attention" | "mlp" | "router" | "experts" | "shared_experts" | "norms" | "output_layer" | "other",
    number
  >;
}
/** Bytes. */
export interface RankMemory {
  pipeline_rank: number;
  tensor_rank: number;
  expert_rank: number;
  gpus: string[] | LabelsByRule;
  parameters: number;
  gradients: number;
  optimizer: number;
  activations: number;
  temporaries: number;
  peak_allocated: number;
  framework: number;
  peak_reserved: number;
  /** The same when the allocator has given back all that it can. */
  peak_required: number;
  fits: boolean;
  at: string;
  breakdown: Tree;
}
export interface Totals {
  calls_per_iteration: number;
  bytes_per_iteration: number;
  wire_bytes_per_iteration: number;
  network_wire_bytes_per_iteration: number;
}
export interface Operation {
  name: string;
  collective: "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "send_recv" | "broadcast";
  where: string;
  shape: number[];
  dtype: string;
  bytes_per_call: number;
  calls_per_micro_batch_per_gpu: number;
  calls_per_iteration_per_gpu: number;
  group_kind: string;
  group_size: number;
  link: string;
  overlapped: boolean;
}
export interface DimensionTraffic {
  groups: number;
  group_size: number;
  operations: Operation[];
  per_gpu: Totals;
  stages: Totals[];
  cluster: Totals;
}
export interface Time {
  step_seconds: number;
  /** What nine of ten measured steps of such plans lie in. */
  interval: {
    low_seconds: number;
    high_seconds: number;
    family: string;
    rows: number;
    sources: number;
    narrowed_by: string[];
  };
  lower_bound_seconds: number;
  upper_bound_seconds: number;
  tokens_per_second: number;
  tokens_per_second_per_gpu: number;
  samples_per_second: number;
  model_flops_per_step: number;
  hardware_flops_per_step: number;
  model_tflops_per_gpu: number;
  hardware_tflops_per_gpu: number;
  mfu: number;
  hfu: number;
  bubble_fraction: number;
  breakdown: Tree;
  schedule: { name: string; in_flight: number[] };
}
export interface Report {
  parameters: { total: number; active_per_token: number; ranks: RankParameters[] };
  topology: {
    world_size: number;
    num_nodes: number;
    gpus_per_node: number;
    /** Lists of ranks up to 4,096 ranks in all, beyond by rule. */
    groups: Record<string, number[][] | GroupsByRule | null>;
    labels: string[] | LabelsByRule;
    stages: {
      pipeline_rank: number;
      chunks: { virtual_rank: number; layers: [number, number] | []; embedding: boolean; output_layer: boolean }[];
    }[];
  };
  memory: {
    ranks: RankMemory[];
    worst: { pipeline_rank: number; peak_allocated: number; peak_reserved: number; at: string };
    capacity: number;
    /** Share of the capacity that is to stay free. */
    headroom: number;
    verdict: "fits" | "tight" | "out_of_memory";
    fits: boolean;
    layers: unknown;
    saved_activations: { dense: number | null; moe: number | null };
  };
  communication: { dimensions: Record<string, DimensionTraffic | null>; total: Totals };
  utilisation: {
    name: string;
    stage: number;
    full: { m: number; n: number; k: number; batch: number };
    sharded: { m: number; n: number; k: number; batch: number };
    flops: number;
    bytes: number;
    arithmetic_intensity: number;
    efficiency: number;
    bound: "compute" | "memory";
    note: string | null;
  }[];
  time: Time;
  advice: {
    code: string;
    message: string;
    why: string;
    change: Record<string, string>;
    expected: { step_seconds: number | null; peak_reserved: number | null };
  }[];
  explanations: Record<string, { formula: string; meaning: string; symbols: Record<string, number>; letters: Record<string, string>; source: string }>;
}
/** The document `shardscope/report/2`. Bytes, counts, seconds, FLOPs: bare numbers. */
export interface Document {
  schema: "shardscope/report/2";
  settings: Record<string, Setting>;
  questions: Question[];
  diagnostics: Diagnostic[];
  /**
   * Settings that change figures and are not modelled. While there is one that the setting `without` does not name,
   * `report` is null.
   */
  not_modelled: {
    name: string;
    value: string;
    effect: "model" | "memory" | "communication" | "time";
    message: string;
    line?: number;
    column?: number;
    length?: number;
    file?: string;
  }[];
  report: Report | null;
}
/** Member i of group k: digits of k times strides of `groups` plus digits of i times strides of `members`, first axis fastest. */
export interface GroupsByRule {
  count: number;
  size: number;
  rule: { groups: { count: number; stride: number }[]; members: { count: number; stride: number }[] };
  /** The first members of the first groups. */
  first: number[][];
}
export interface LabelsByRule {
  count: number;
  ranks: { first: number; members: { count: number; stride: number }[] };
  /** How a rank is called, in words. */
  label: string;
  first: string[];
}
export interface Outcome {
  /** Settings that differ from the input's plan. */
  change: Record<string, string>;
  peak_reserved: number;
  /** Whether it takes some of the headroom; such layouts stand last. */
  tight: boolean;
  step_seconds: number;
}
/** A dimension of a search that has sizes. */
export type Sized = "tp" | "pp" | "vpp" | "cp" | "ep" | "etp" | "mbs" | "instances";
/** One that has none. */
export type Unsized =
  | "split"
  | "schedule"
  | "sp"
  | "sharding"
  | "recompute"
  | "overlap"
  | "rank-order"
  | "precision"
  | "offload"
  | "offload-modules";
/**
 * How far dimensions are varied: as in the input (`fixed`), whatever the software can say (`open`), one size, or sizes between
 * two. Open unless stated are all but precision, offload, offload-modules and instances.
 */
export type Vary = { [name in Sized]?: "fixed" | "open" | number | [least: number, most: number] } & {
  [name in Unsized]?: "fixed" | "open";
};
/** Why a layout is not the answer. */
export interface Why {
  /** In one sentence. */
  why: string;
  /** Whether the software would start it. */
  starts: boolean;
  /** What it changes of the input's plan. */
  change: Record<string, string>;
  /** The fastest, which it is held against; null where nothing fits. */
  best: Outcome | null;
}
export interface Search {
  /** Parts of the space looked at, and all of them; each holds up to thousands of layouts. */
  tried: number;
  of: number;
  /** Layouts that the software refuses. */
  refused: number;
  /** The same by the code of the reason. */
  refused_by_reason: Record<string, number>;
  /** Layouts that run out of memory. */
  too_large: number;
  best: Outcome[];
  frontier: Outcome[];
}

export interface Asked {
  question:
    | "fewest-gpus"
    | "which-gpu"
    | "cheapest"
    | "scaling"
    | "one-more-node"
    | "longest-sequence"
    | "largest-micro-batch"
    | "largest-model";
  /** What trains; as in the input where it is not given. */
  train?: "full" | "lora" | "qlora";
  /** For `cheapest`: tokens to train on, price of an accelerator-hour, days at most. */
  tokens?: number;
  price?: number;
  days?: number;
  /** For `cheapest` and `scaling`: nodes at most. */
  most_nodes?: number;
  /** For `which-gpu`: price of an accelerator-hour by kind; these kinds are compared, by what the tokens cost within `days`. */
  prices?: Record<string, number>;
  /** How far dimensions are varied in every search for the answer. */
  vary?: Vary;
}
export interface Answer {
  /** In one sentence. */
  answer: string;
  answered: boolean;
  /** Every size, kind or model that was looked at, in order; `layout` is null where nothing fits. */
  lines: {
    name: string;
    chosen: boolean;
    layout: Outcome | null;
    gpus: number | null;
    tokens_per_second: number | null;
    days: number | null;
    cost: number | null;
  }[];
}

/** Loads the engine; in Node the package does it by itself. */
export function load(wasm?: BufferSource | URL | string | Response | Promise<Response>): Promise<void>;
/** What the texts say: settings with their origin, open questions, diagnostics; `report` is null. */
export function read(input: Input): Document;
/** The whole document. */
export function estimate(input: Input): Document;
/** The report for people; empty when the input makes no plan. */
export function report(input: Input, format?: "text" | "markdown"): string;
/** Other layouts of the same run. Throws when the input makes no plan. */
export function search(input: Input, options?: { limit?: number; tries?: number; vary?: Vary }): Search;
/** Why a layout, as people write it ("TP 4 PP 8 VPP 5 recompute full"), is not the fastest of the whole search. Throws where a word is not understood. */
export function whyNot(input: Input, layout: string): Why;
/** The answer to a question about the input. Throws what is missing to answer it. */
export function ask(input: Input, asked: Asked): Answer;
/** The fragment of a link (without #) that carries the input. */
export function share(input: Input): string;
/** The input that a link's fragment carries. Throws a sentence when it cannot be read. */
export function open(fragment: string): Exclude<Input, string>;
/** The version of the document's form. */
export function schema(): string;
