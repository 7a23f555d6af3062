"""The engines: what each datapath instruction and each DMA descriptor does to the memories."""
