use shardscope::estimate::memory;
use shardscope::explain::Breakdown;
use shardscope::intake::{Request, read, shell::Environment};
use shardscope::text::Source;
use shardscope::quantity::Bytes;
fn show(node: &Breakdown<Bytes>, depth: usize, least: f64) {
    let v = node.value().in_mib();
    if v < least { return; }
    println!("{:indent$}{} {:.1}{}{}", "", node.label(), v, if node.multiplicity()>1 {format!(" (x{})", node.multiplicity())} else {String::new()}, node.why().map(|w| format!("   [{}]", w.formula.expression)).unwrap_or_default(), indent = depth*2);
    for c in node.children() { show(c, depth+1, least); }
}
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let rows: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&args[1]).unwrap()).unwrap();
    let only = args.get(2).cloned().unwrap_or_default();
    for row in rows.as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        if !only.is_empty() && !id.contains(&only) { continue; }
        let text = format!("{}\ntorchrun --nnodes {} --nproc_per_node {} pretrain_gpt.py {}", row["env"].as_str().unwrap_or(""), (row["gpus"].as_u64().unwrap()).div_ceil(row["per_node"].as_u64().unwrap()), row["per_node"].as_u64().unwrap().min(row["gpus"].as_u64().unwrap()), row["flags"].as_str().unwrap().replace("(", "'(").replace(")", ")'").replace("|", "\\|").replace("'(", "\\(").replace(")'", "\\)").replace("*", "\\*"));
        let source = Source::new(&text);
        let mut overrides = vec![("accelerator".to_string(), row["gpu"].as_str().unwrap().to_string())];
        if let Some(s) = row["software"].as_str() { overrides.push(("software".into(), s.into())); }
        if let Some(o) = row["set"].as_object() { for (k, v) in o { overrides.push((k.clone(), v.as_str().unwrap().to_string())); } }
        let r = read(&Request { source: &source, environment: &Environment::default(), overrides: &overrides });
        let plan = match r.plan { Some(p) => p, None => { println!("{id}: no plan {:?}", r.diagnostics.iter().map(|d| d.message.clone()).collect::<Vec<_>>()); continue; } };
        let m = memory(&plan);
        for rank in row["ranks"].as_array().unwrap() {
            let r = match rank[0].as_u64() { Some(i) => &m.ranks[i as usize], None => m.ranks.iter().max_by_key(|r| r.totals.peak_allocated).unwrap() };
            let rank = &serde_json::json!([r.pipeline_rank, rank[1], rank[2]]);
            let got = r.totals.peak_allocated.in_gib();
            let meas = rank[1].as_f64().unwrap();
            if let Some(st) = row["steady"].as_f64() { print!("[steady {:+.0} MiB of {:.0}; moving {:+.1}%] ", r.totals.between_steps.in_mib() - st/1048576.0, st/1048576.0, 100.0*((got*1024.0 - r.totals.between_steps.in_mib())/(meas*1024.0-st/1048576.0)-1.0)); }
            println!("{id} {} stage {} measured {meas:.3} model {got:.3} {:+.2}% diff {:+.0} MiB at {} ({:?}); reserved {:.2} vs {:?}", row["what"].as_str().unwrap_or(""), rank[0], 100.0*(got/meas-1.0), (got-meas)*1024.0, r.at, r.within, r.totals.peak_reserved.in_gib(), rank[2]);
            if !only.is_empty() { show(&r.breakdown, 1, 1.0); }
        }
    }
}
