"""What a model may call: functions, what the caller's machine does, and what the API's own servers run.

    Python function -> schema, description -> `FunctionTool` -> arguments of a call -> output

A tool knows the context of a call and the items of a run, and nothing of the loop that calls it. `antiphon.tool` has
the public names.
"""
