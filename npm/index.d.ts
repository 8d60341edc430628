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

/** Where something stands in a text: line and column from 1, in characters; `file` where there are several. */
export interface Position {
  line?: number;
  column?: number;
  length?: number;
  file?: string;
}
export interface Setting extends Position {
  value: number | string | boolean | null | unknown[];
  origin: Origin;
  flag?: string;
  note?: string;
}
/** What the texts leave open and a report needs. */
export interface Question {
  name: string;
  prompt: string;
  choices?: string[];
  proposal?: string;
}
export interface Diagnostic extends Position {
  severity: "error" | "warning" | "note";
  code: string;
  message: string;
  hint?: string;
}
/** A setting that changes figures and is not modelled. */
export interface NotModelled extends Position {
  name: string;
  value: string;
  effect: "model" | "memory" | "communication" | "time";
  message: string;
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
  /** Those that train, and those that are frozen. */
  trained: number;
  frozen: number;
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
  /** Of these the weights that train, and those that are frozen. */
  trained: number;
  frozen: number;
  gradients: number;
  optimizer: number;
  activations: number;
  temporaries: number;
  peak_allocated: number;
  framework: number;
  peak_reserved: number;
  /** The same when the allocator has given back all that it can. */
  peak_required: number;
  /** What `torch.cuda.memory_allocated()` shows between two steps. */
  between_steps: number;
  fits: boolean;
  /** The moment of the peak, and the operator during which it is reached. */
  at: string;
  within: string | null;
  /** Activations saved by each model chunk. */
  chunks: { kept_per_micro_batch: number; in_flight: number }[];
  breakdown: Tree;
}
/** Training and rollouts of reinforcement learning, which follow each other. Bytes. */
export interface Rollouts {
  co_located: boolean;
  phases: { name: string; peak: number; verdict: Verdict; breakdown: Tree }[];
  out_of_memory: string[];
  weights: number;
  kv_cache: number;
  graphs: number;
  cache_tokens: number;
  cache_rollouts: number;
}
export type Verdict = "fits" | "tight" | "out_of_memory";
/** Parameters, and bytes of the weights and of what is saved for backward of one micro-batch. */
export interface LayerLoad {
  parameters: number;
  parameter_bytes: number;
  activation_bytes: number;
  /** Of leaves. */
  shape?: number[];
}
/** A part of the model, whole and on one rank that holds it. */
export interface Layer extends LayerLoad {
  name: string;
  times?: number;
  sharded: LayerLoad;
  children?: Layer[];
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
  /** By a GPU of each pipeline rank. */
  calls_per_iteration_by_stage: number[];
  group_kind: string;
  group_size: number;
  link: string;
  overlapped: boolean;
  /** What one call puts on the wire, per GPU, by algorithm. */
  wire_bytes_per_call: Record<string, number>;
}
export interface DimensionTraffic {
  groups: number;
  group_size: number;
  group_kind: string;
  /** The slowest link that a group spans. */
  link: string;
  operations: Operation[];
  /** Of the GPU that sends most, and the pipeline rank of that GPU. */
  per_gpu: Totals;
  busiest_pipeline_rank: number;
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
  peak_tflops_per_gpu: number;
  mfu: number;
  hfu: number;
  bubble_fraction: number;
  breakdown: Tree;
  /** Where fewer micro-batches are simulated than there are, the rest goes on at their pace, within 1 % of the whole run. */
  schedule: { name: string; micro_batches: number; simulated_micro_batches: number; in_flight: number[] };
  /** Null where a convention does not apply. */
  flops_by_convention: Record<string, number | null>;
  /** The whole training at this pace; null where no budget is stated. */
  training: {
    tokens: number;
    steps: number;
    seconds: number;
    days: number;
    gpu_hours: number;
    megawatt_hours: number | null;
    cost: number | null;
  } | null;
  /** What the estimate cannot know, a sentence each. */
  unknowns: string[];
}
export interface Report {
  /** Settings that are not modelled and were gone on without: the figures do not know of them. */
  without: string[];
  /** Options and keys of the training that are not known here. */
  not_read: string[];
  /** Whether step time and FLOPs leave out the passes of a vision tower. */
  images_untimed?: boolean;
  parameters: { total: number; active_per_token: number; trained: number; ranks: RankParameters[] };
  topology: {
    world_size: number;
    num_nodes: number;
    gpus_per_node: number;
    /** Lists of ranks up to 4,096 ranks in all, beyond by rule. */
    groups: Record<string, number[][] | GroupsByRule | null>;
    labels: string[] | LabelsByRule;
    stages: {
      pipeline_rank: number;
      chunks: { virtual_rank: number; layers: [number, number] | []; embedding: boolean; output_layer: boolean; mtp_layers: number }[];
    }[];
  };
  memory: {
    ranks: RankMemory[];
    worst: { pipeline_rank: number; peak_allocated: number; peak_reserved: number; at: string };
    capacity: number;
    /** Share of the capacity that is to stay free. */
    headroom: number;
    verdict: Verdict;
    fits: boolean;
    /** What the estimate cannot know, a sentence each. */
    unknowns: string[];
    layers: Layer;
    /** By one layer for one micro-batch on one rank; `kinds` where there are others than attention with a dense MLP or experts. */
    saved_activations: { dense: number | null; moe: number | null; kinds?: Record<string, number> };
    /** Null where nothing is rolled out. */
    rollout: Rollouts | null;
  };
  communication: { dimensions: Record<string, DimensionTraffic | null>; total: Totals };
  utilisation: {
    name: string;
    stage: number;
    full: { m: number; n: number; k: number; batch: number };
    sharded: { m: number; n: number; k: number; batch: number };
    flops: number;
    bytes: number;
    /** FLOP per byte, and the intensity above which arithmetic is the limit. */
    arithmetic_intensity: number;
    ridge: number;
    /** Share of the peak that the sharded product reaches, and the full one. */
    efficiency: number;
    full_efficiency: number;
    /** Share of the tiles that is filled, and of the multiprocessors that work in the last wave. */
    tile_fill: number;
    wave_fill: number;
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
  /** FLOPs of a step by each convention; null where one does not apply. */
  flops: { convention: string; flops_per_step: number | null; formula: string; meaning: string; source: string }[];
  /** The figures of the analysis tool of 2023 beside ours. */
  analysis_tool: {
    rows: {
      section: string;
      label: string;
      unit: "count" | "bytes";
      tool: number;
      ours: number;
      agrees: boolean;
      /** Numbers of `departures` that make the difference. */
      departures: number[];
    }[];
    departures: Record<string, string>;
  };
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
  not_modelled: NotModelled[];
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

/** A question that people have before they launch; a value that it does not take is refused. */
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
