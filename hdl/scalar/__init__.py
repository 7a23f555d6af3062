"""The scalar engine: func(x * scale + bias) over P lanes."""
