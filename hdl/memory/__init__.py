"""SBUF and PSUM: their banks and arbiters, and the streams of elements that engines read and write."""
