"""DMA engines: descriptors of strided rows, copied between HBM and SBUF by the byte."""
