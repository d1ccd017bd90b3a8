"""The groups and sections of the docs page: one section for each operation and each callback."""

from html import escape

from duetime.api.docs.code_blocks import Json, Operation, code_block, curl, shown
from duetime.api.docs.fields import answer_fields, body_fields, parameter_list, prose
from duetime.api.docs.send_form import example_id, send_form


def group(tag: Json, operations: list[Operation], callback: Json | None) -> str:
    sections = [_section(each) for each in operations]
    if callback is not None:
        sections.append(_callback_section(callback_id(tag), callback))
    return (
        f"<div class=group><h2>{escape(tag['name'])}</h2><p>{prose(tag['description'])}</p>"
        f"{''.join(sections)}</div>"
    )


def callback_of(operations: list[Operation]) -> Json | None:
    """The callback of the timers of these operations, which is the same for all of them."""
    for operation in operations:
        for callback in operation.details.get("callbacks", {}).values():
            for item in callback.values():
                found: Json = item["post"]
                return found
    return None


def callback_id(tag: Json) -> str:
    name: str = tag["name"]
    return f"callback-{name.lower().replace(' ', '-')}"


def badge(method: str) -> str:
    return f'<span class="method {method}">{method.upper()}</span>'


def _section(operation: Operation) -> str:
    details = operation.details
    about = (
        f"<p class=about>{prose(details['description'])}</p>" if "description" in details else ""
    )
    return (
        f'<section id="{operation.id}">'
        f'<h3><a href="#{operation.id}">{escape(details["summary"])}</a></h3>'
        f"<p class=path>{badge(operation.method)} <code>{escape(operation.path)}</code></p>{about}"
        f"<div class=columns><div class=trial><div>{_trial(operation)}</div></div>"
        f"<div class=facts>{_facts(details)}</div></div></section>"
    )


def _trial(operation: Operation) -> str:
    examples = [
        f"<details><summary>Body: {escape(name)}</summary>"
        f"{code_block(text, f'the body: {name}', example_id(operation, number))}</details>"
        for number, (name, text) in enumerate(operation.body_examples().items())
    ]
    return (
        f"<h4>Try it</h4>{code_block(curl(operation), 'the command')}{''.join(examples)}"
        f"{send_form(operation)}"
    )


def _facts(details: Json) -> str:
    parts = []
    if "parameters" in details:
        parts.append(f"<h4>Parameters</h4>{parameter_list(details['parameters'])}")
    if "requestBody" in details:
        parts.append(f"<h4>Body</h4>{body_fields(details['requestBody'])}")
    parts.append(answer_fields(details["responses"]))
    parts.append("<h4>Answers</h4>")
    parts.extend(_answer(status, answer) for status, answer in details["responses"].items())
    return "".join(parts)


def _callback_section(name: str, callback: Json) -> str:
    body = callback["requestBody"]
    answers = "".join(_answer(status, answer) for status, answer in callback["responses"].items())
    return (
        f'<section id="{name}"><h3><a href="#{name}">{escape(callback["summary"])}</a></h3>'
        f"<p class=about>{prose(callback['description'])}</p>"
        f"<div class=columns><div class=trial><div><h4>Example</h4>{_examples(body)}</div></div>"
        f"<div class=facts><h4>Headers</h4>{parameter_list(callback['parameters'])}"
        f"<h4>Body</h4>{body_fields(body, given_by_client=False)}"
        f"<h4>Answers</h4>{answers}</div></div></section>"
    )


def _answer(status: str, answer: Json) -> str:
    kind = "ok" if status < "3" else "bad"
    return (
        f"<details><summary><span class={kind}>{status}</span> "
        f"{escape(answer['description'])}</summary>{_examples(answer)}</details>"
    )


def _examples(owner: Json) -> str:
    """The examples of a body, if there is one."""
    for content in owner.get("content", {}).values():
        return "".join(
            code_block(shown(example["value"]), f"the example: {name}")
            for name, example in content["examples"].items()
        )
    return ""
