"""Sequencers: fetch, decode, check and control of the five instruction streams; semaphores."""
