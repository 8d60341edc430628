//! A trainer by rewards whose engines are not modelled: AReaL (`areal/api/cli_args.py`).

use super::row::Row;
use shardscope_plan::{Field, Software};

const LACKING: Option<&str> = Some("what its training engines hold, and its rollouts beside them");

/// AReaL's settings file.
pub(in crate::formats) const AREAL: Row = Row {
    trainer: "AReaL",
    title: "a configuration of AReaL",
    about: "AReaL: model by name, machines; its engines stop the verdict",
    signs: &[
        &["actor.path", "gconfig"],
        &["actor.path", "rollout", "cluster"],
        &["actor.path", "train_dataset"],
    ],
    keys: &[(&["cluster.n_nodes"], Field::NumNodes), (&["cluster.n_gpus_per_node"], Field::GpusPerNode)],
    models: &["actor.path"],
    software: Software::HfTransformers,
    lacking: LACKING,
    extra: |_| {},
    program: None,
};
