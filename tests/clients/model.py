"""A model on 127.0.0.1 that plays a script, in the four protocols that the clients speak.

A script is a list of steps. A step is a list of calls, made in parallel, or a text, which ends the
turn. Scripts are kept per part: a request is part of the main conversation if the prompt of the
user is in it, of a sub-agent's if its task is. Every request is kept, so that a test can ask what the model
was told.
"""

import gzip
import itertools
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# In every prompt of ours, and so in every request of the main conversation.
MAIN = "beforehand-main"
# In the task of every sub-agent of ours. A client's own requests, such as for a title, have neither.
SUB = "beforehand-sub"
# How a request for a title begins that offers tools and has the user's words in it (Grok Build).
TITLE = "You are tasked with generating the session title"
# What is answered when a script is over, or to a request that is none of ours.
IDLE = "done"
USAGE = {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12}


class Call:
    """One tool call: named arguments, or one text for tools that take it so."""

    def __init__(self, name, args=None, *, raw=None, namespace=None):
        self.name, self.args, self.raw, self.namespace = name, args or {}, raw, namespace


class Model:
    """The server, and what it is to say next."""

    def __init__(self):
        self.lock = threading.Lock()
        self.ids = itertools.count(1)
        self.scripts, self.requests, self.faults = {}, [], []
        handler = type("Handler", (Handler,), {"model": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def play(self, main, sub=()):
        """Starts with new scripts and forgets what was asked before."""
        with self.lock:
            self.scripts = {"main": list(main), "sub": list(sub)}
            self.requests = []

    def was_told(self, text):
        """Whether a request has this text in it, in a string of whatever depth."""
        return any(text in string for body in self.requests for string in strings(body))

    def left(self):
        """How many steps nobody asked for."""
        return sum(len(script) for script in self.scripts.values())

    def next(self, body):
        """The step for a request."""
        with self.lock:
            self.requests.append(body)
            if not offers_tools(body) or any(text.startswith(TITLE) for text in strings(body)):
                return IDLE
            script = self.script_of(body)
            return script.pop(0) if script else IDLE

    def script_of(self, body):
        """The script that a request goes on with, if any."""
        for part, mark in (("main", MAIN), ("sub", SUB)):
            if any(mark in text for text in strings(body)):
                return self.scripts.get(part)
        return None

    def id(self, kind):
        return f"{kind}_{next(self.ids):04d}"


def strings(value):
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


def offers_tools(body):
    """Titles and summaries are asked for without tools. Codex may send its tools as input."""
    items = body.get("input")
    kinds = [item.get("type") for item in items or [] if isinstance(item, dict)]
    return bool(body.get("tools")) or isinstance(items, list) and "additional_tools" in kinds


class Handler(BaseHTTPRequestHandler):
    """Takes requests apart and puts answers together; which protocol, the path says."""

    protocol_version = "HTTP/1.1"
    model = None

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply({})

    def do_GET(self):
        entry = {"id": "mock-model", "object": "model", "created": 1, "owned_by": "mock"}
        is_list = self.path.split("?")[0].endswith("/models")
        self.reply({"object": "list", "data": [entry], "models": []} if is_list else {}, 200 if is_list else 404)

    def do_POST(self):
        body = self.body()
        path = self.path.split("?")[0]
        routes = [
            ("count_tokens", lambda _: self.reply({"input_tokens": 9})),
            (":countTokens", lambda _: self.reply({"totalTokens": 9})),
            ("/messages", self.anthropic),
            ("/responses", self.openai),
            ("/chat/completions", self.chat),
            ("enerateContent", self.google),
        ]
        for end, answer in routes:
            if path.endswith(end):
                try:
                    return answer(body)
                except (BrokenPipeError, ConnectionResetError):
                    return None
                except Exception as fault:  # pylint: disable=broad-except
                    self.model.faults.append(f"the model itself failed at {path}: {fault!r}")
                    return self.reply({}, 500)
        return self.reply({}, 404)

    def body(self):
        if "chunked" in (self.headers.get("transfer-encoding") or ""):
            raw = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                raw += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        return body if isinstance(body, dict) else {}

    def reply(self, value, code=200):
        data = json.dumps(value).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def stream(self, events):
        """Server-sent events: objects, some with a name, or plain text."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{f'event: {name}{chr(10)}' if name else ''}data: {text}\n\n".encode())
        self.close_connection = True

    def anthropic(self, body):
        """Anthropic's messages."""
        step, id = self.model.next(body), self.model.id
        is_text = isinstance(step, str)
        blocks = [{"type": "text", "text": step}] if is_text else [
            {"type": "tool_use", "id": id("toolu"), "name": call.name, "input": call.args} for call in step
        ]
        reason = "end_turn" if is_text else "tool_use"
        whole = {"id": id("msg"), "type": "message", "role": "assistant", "model": body.get("model", "mock"),
                 "content": blocks, "stop_reason": reason, "stop_sequence": None, "usage": USAGE}
        if not body.get("stream"):
            return self.reply(whole)
        events = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
        for index, block in enumerate(blocks):
            empty, delta = (({**block, "text": ""}, {"type": "text_delta", "text": step}) if is_text else
                            ({**block, "input": {}}, {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}))
            events.append({"type": "content_block_start", "index": index, "content_block": empty})
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
            events.append({"type": "content_block_stop", "index": index})
        events.append({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": USAGE})
        events.append({"type": "message_stop"})
        return self.stream((event["type"], event) for event in events)

    def openai(self, body):
        """OpenAI's responses."""
        step, id = self.model.next(body), self.model.id

        def item(call):
            common = {"call_id": id("call"), "name": call.name, "status": "completed"}
            if call.namespace:
                common["namespace"] = call.namespace
            if call.raw is not None:
                return {**common, "type": "custom_tool_call", "id": id("ctc"), "input": call.raw}
            return {**common, "type": "function_call", "id": id("fc"), "arguments": json.dumps(call.args)}

        items = [item(call) for call in step] if not isinstance(step, str) else [
            {"type": "message", "id": id("msg"), "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": step, "annotations": []}]}
        ]
        usage = {**USAGE, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        whole = {"id": id("resp"), "object": "response", "created_at": 1, "status": "completed",
                 "model": body.get("model"), "output": items, "usage": usage}
        if not body.get("stream"):
            return self.reply(whole)
        events = [{"type": "response.created", "response": {**whole, "status": "in_progress", "output": []}}]
        for index, it in enumerate(items):
            events.append({"type": "response.output_item.added", "output_index": index, "item": {**it, "status": "in_progress"}})
            events.append({"type": "response.output_item.done", "output_index": index, "item": it})
        events.append({"type": "response.completed", "response": whole})
        return self.stream((event["type"], event) for event in events)

    def chat(self, body):
        """OpenAI's chat completions."""
        step, id = self.model.next(body), self.model.id
        calls = [] if isinstance(step, str) else [
            {"index": index, "id": id("call"), "type": "function",
             "function": {"name": call.name, "arguments": json.dumps(call.args)}}
            for index, call in enumerate(step)
        ]
        content, end = (None, "tool_calls") if calls else (step, "stop")
        usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
        base = {"id": id("chatcmpl"), "created": 1, "model": body.get("model", "mock")}
        if not body.get("stream"):
            message = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
            choice = {"index": 0, "message": message, "finish_reason": end}
            return self.reply({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        base["object"] = "chat.completion.chunk"
        deltas = [({"role": "assistant", "content": content or ""}, None), *([({"tool_calls": calls}, None)] if calls else []), ({}, end)]
        chunks = [{**base, "choices": [{"index": 0, "delta": delta, "finish_reason": why}]} for delta, why in deltas]
        chunks += [{**base, "choices": [], "usage": usage}, "[DONE]"]
        return self.stream((None, chunk) for chunk in chunks)

    def google(self, body):
        """Gemini's content. Its router and loop checks want an object of their own shape."""
        wanted = body.get("generationConfig") or {}
        if wanted.get("responseMimeType") == "application/json" or wanted.get("responseJsonSchema") or wanted.get("responseSchema"):
            verdict = {"reasoning": "mock", "model_choice": "flash", "next_speaker": "user", "complexity_reasoning": "mock",
                       "complexity_score": 1, "unproductive_state_confidence": 0, "unproductive_state_analysis": "mock"}
            parts = [{"text": json.dumps(verdict)}]
        else:
            step = self.model.next(body)
            parts = [{"text": step}] if isinstance(step, str) else [
                {"functionCall": {"name": call.name, "args": call.args}} for call in step
            ]
        content = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
        count = {"promptTokenCount": 9, "candidatesTokenCount": 3, "totalTokenCount": 12}
        whole = {"candidates": [content], "usageMetadata": count, "modelVersion": "mock"}
        return self.stream([(None, whole)]) if "stream" in self.path else self.reply(whole)
