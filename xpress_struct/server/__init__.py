"""A server that speaks OpenAI's protocol: `app.create_app` makes it, `xpress-struct serve` runs it.

Needs the extra: `pip install "xpress-struct[server]"`. Nothing is imported here: the process that checks
constraints needs no model.
"""
