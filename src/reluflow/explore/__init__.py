"""The explorer: drag points and neurons in a browser and watch the exact gradient flow follow.

    state.py     what is explored, checked; TOML and links are made of it
    compute.py   state -> run -> what the page draws; no input or output
    slow.py      what takes longer, in a process of its own that can be killed
    frames.py    results as bytes
    session.py   messages in, frames out; the newest state wins
    server.py    the loopback server; widget.py the notebook; export.py one page without Python
    static/      the page: ES modules that draw SVG

This file imports nothing: `reluflow.explore` the function has the name of the package.
"""
