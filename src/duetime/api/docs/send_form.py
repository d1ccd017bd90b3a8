"""The form that sends an operation's request from the docs page."""

from html import escape

from duetime.api.docs.code_blocks import Json, Operation

_ASKING = frozenset(
    {
        "cancelTimerV1",
        "cancelSelectedTimerV1",
        "deleteSelectedTimerV1",
        "redriveTimersV1",
        "startOperationV1",
    }
)
"""Operations that end or change timers for good, beside everything that is a DELETE. The page asks
before it sends their requests."""

_MAX_ROWS = 18


def asks_first(operation: Operation) -> bool:
    return operation.method == "delete" or operation.id in _ASKING


def send_form(operation: Operation) -> str:
    """The form works with the page's script only, so it is not shown without it."""
    attributes = [
        f'data-method="{operation.method.upper()}"',
        f'data-path="{escape(operation.path)}"',
        f'data-title="{escape(operation.details["summary"])}"',
    ]
    if operation.needs_key:
        attributes.append("data-needs-key")
    if operation.media is not None:
        attributes.append(f'data-media="{operation.media}"')
    if asks_first(operation):
        attributes.append("data-asks-first")
    fields = [_field(operation, each) for each in operation.parameters if each["in"] != "header"]
    return (
        f'<details class="send js"><summary>Send a request</summary><form {" ".join(attributes)}>'
        f"{''.join(fields)}{_body(operation)}<button type=submit>Send</button>"
        "<p class=outcome role=status></p>"
        '<p class=hint hidden>The key is missing or wrong: <a href="#api-key">type your API key</a>'
        " at the top of the page.</p>"
        "<details class=headers-of-answer hidden><summary>Headers of the answer</summary>"
        "<pre class=headers></pre></details>"
        '<div class="code body-of-answer" hidden><pre class=body></pre>'
        '<button type=button class="copy js" aria-label="Copy the answer">Copy</button></div>'
        "</form></details>"
    )


def _field(operation: Operation, parameter: Json) -> str:
    name, schema = escape(parameter["name"]), parameter["schema"]
    id = f"{operation.id}-{name}"
    attributes = f'id="{id}" name="{name}" data-in={parameter["in"]} autocomplete=off'
    if "enum" in schema:
        default = f" ({escape(schema['default'])})" if "default" in schema else ""
        choices = [f'<option value="">not given{default}</option>']
        choices += [f"<option>{escape(each)}</option>" for each in schema["enum"]]
        field = f"<select {attributes}>{''.join(choices)}</select>"
    elif parameter["in"] == "path":
        value = escape(parameter["example"])
        field = f'<input {attributes} value="{value}" spellcheck=false required>'
    else:
        default = escape(str(schema.get("default", "")))
        field = f'<input {attributes} placeholder="{default}" spellcheck=false>'
    return f'<label for="{id}">{name}</label>{field}'


def _body(operation: Operation) -> str:
    examples = operation.body_examples()
    if not examples:
        return ""
    id = f"{operation.id}-body"
    first = next(iter(examples.values()))
    rows = min(max(first.count("\n") + 1, 3), _MAX_ROWS)
    # A line break directly after the tag is not part of the text.
    return (
        f"{_example_choice(operation, examples)}"
        f'<label for="{id}">Body ({operation.media})</label>'
        f'<textarea id="{id}" rows={rows} spellcheck=false autocomplete=off>\n'
        f"{escape(first)}</textarea>"
    )


def _example_choice(operation: Operation, examples: dict[str, str]) -> str:
    if len(examples) < 2:
        return ""
    id = f"{operation.id}-example"
    options = [
        f'<option value="{example_id(operation, number)}">{escape(name)}</option>'
        for number, name in enumerate(examples)
    ]
    return (
        f'<label for="{id}">Example</label>'
        f'<select id="{id}" class=example autocomplete=off>{"".join(options)}</select>'
    )


def example_id(operation: Operation, number: int) -> str:
    """The id of the block that shows this example of the body."""
    return f"{operation.id}-example-{number}"
