CONFIG_FILE="./configs/8b.toml" bash ./run_train.sh --parallelism.tensor_parallel_degree 2
