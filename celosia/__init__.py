"""What users import: the program library (later the kernel language, the compiler and the
profiler).
"""
