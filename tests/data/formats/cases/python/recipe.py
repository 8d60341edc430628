import torch
from megatron.bridge.recipes import llama3

def main():
    llama3.pretrain(tensor_model_parallel_size=8)
