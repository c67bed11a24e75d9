"""The application: OpenAI's endpoints over one model."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from xpress_struct.model import Model
from xpress_struct.results import Generation
from xpress_struct.server.answers import ChatAnswer, CompletionAnswer, usage
from xpress_struct.server.bodies import read_json
from xpress_struct.server.errors import RequestError, as_request_error, error_response
from xpress_struct.server.generation import Task, chat_task, completion_task
from xpress_struct.server.limits import Limits
from xpress_struct.server.requests import ChatRequest, CompletionRequest, read_request
from xpress_struct.server.service import Service
from xpress_struct.server.streams import EventStream
from xpress_struct.server.worker import Event, Finished, Job, Piece

__all__ = ["create_app"]

Answer = ChatAnswer | CompletionAnswer
Asked = ChatRequest | CompletionRequest
Handler = Callable[[Service, Request, float, ExitStack], Awaitable[Response]]


def create_app(model: Model, name: str, limits: Limits | None = None) -> FastAPI:
    """Makes the application; any ASGI server runs it, in one process.

    Args:
        model: answers one request at a time.
        name: of the model, as requests must say it.
        limits: what one request may cost.
    """
    service = Service(model, name, limits or Limits())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="xpress_struct", lifespan=lifespan, openapi_url=None)
    app.state.service = service

    @app.exception_handler(HTTPException)
    async def told(request: Request, error: HTTPException) -> Response:
        missing = RequestError(str(error.detail), status=error.status_code, code="not_found")
        return error_response(missing)

    def route(path: str, handler: Handler) -> None:
        async def endpoint(request: Request) -> Response:
            return await _serve(service, path, handler, request)

        app.post(path)(endpoint)

    route("/v1/chat/completions", _chat)
    route("/v1/completions", _completion)
    _add_readings(app, service)
    return app


def _add_readings(app: FastAPI, service: Service) -> None:
    """What can be asked about the server."""
    described = {
        "id": service.name,
        "object": "model",
        "created": service.started,
        "owned_by": "xpress_struct",
        "max_model_len": service.model.target.max_length,
    }

    @app.get("/v1/models")
    async def models() -> Response:
        return JSONResponse({"object": "list", "data": [described]})

    @app.get("/v1/models/{name:path}")
    async def one(name: str) -> Response:
        try:
            _check_model(service, name)
        except RequestError as error:
            return error_response(error)
        return JSONResponse(described)

    @app.get("/health")
    async def health() -> Response:
        alive = service.worker.alive
        return JSONResponse({"status": "ok" if alive else "stopped"}, status_code=200 if alive else 503)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(service.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})


async def _serve(service: Service, path: str, handler: Handler, request: Request) -> Response:
    """Runs a handler; its place and its job are given up when the answer ends, however it ends."""
    arrived = time.perf_counter()
    with ExitStack() as stack:
        seconds = service.metrics.request_s
        stack.callback(lambda: seconds.observe(time.perf_counter() - arrived))
        try:
            response = await handler(service, request, arrived, stack)
        except Exception as error:
            response = error_response(as_request_error(error))
        service.metrics.requests.labels(path, response.status_code).inc()
    return response


async def _chat(service: Service, request: Request, arrived: float, stack: ExitStack) -> Response:
    asked = read_request(ChatRequest, await read_json(request, service.limits))
    task = chat_task(asked, service.limits, _seed(asked))
    top = (asked.top_logprobs or 0) if asked.logprobs else None
    answer = ChatAnswer(
        service.name, service.model.vocabulary, _token_name(service.model), calls=task.calls, top=top
    )
    return await _answer(service, request, asked, task, answer, arrived, stack)


async def _completion(service: Service, request: Request, arrived: float, stack: ExitStack) -> Response:
    asked = read_request(CompletionRequest, await read_json(request, service.limits))
    task = completion_task(asked, service.limits, _seed(asked))
    answer = CompletionAnswer(service.name, service.model.vocabulary, _token_name(service.model))
    return await _answer(service, request, asked, task, answer, arrived, stack)


async def _answer(
    service: Service,
    request: Request,
    asked: Asked,
    task: Task,
    answer: Answer,
    arrived: float,
    stack: ExitStack,
) -> Response:
    _check_model(service, asked.model)
    if asked.stream_options is not None and not asked.stream:
        raise RequestError("stream_options needs stream=true.", param="stream_options")
    stack.enter_context(service.place())
    try:
        constraint = await service.constraint(task.spec)
    except Exception as error:
        raise as_request_error(error, task.param) from error
    job = service.submit(task, constraint, arrived + service.limits.timeout)
    stack.callback(service.worker.leave, job)
    watch = asyncio.create_task(_leave_when_gone(request, service, job))
    stack.callback(watch.cancel)
    events = aiter(job)
    if not asked.stream:
        return await _whole(task, answer, events)
    # Nothing is said before the first event, so that a refusal of the model's is an HTTP error.
    first = await anext(events, None)
    with_usage = bool(asked.stream_options and asked.stream_options.include_usage)
    return EventStream(_chunks(task, answer, first, events, with_usage), stack.pop_all())


async def _leave_when_gone(request: Request, service: Service, job: Job) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    service.worker.leave(job)


async def _whole(task: Task, answer: Answer, events: AsyncIterator[Event]) -> Response:
    results = [(event.choice, event.result) async for event in events if isinstance(event, Finished)]
    _check_finished(task, results)
    choices = [answer.choice(index, result) for index, result in results]
    return JSONResponse(answer.whole(choices, usage(results, len(task.prompts))))


async def _chunks(
    task: Task, answer: Answer, first: Event | None, events: AsyncIterator[Event], with_usage: bool
) -> AsyncIterator[dict[str, Any]]:
    results = []
    event = first
    while event is not None:
        if isinstance(event, Piece):
            choices = answer.begun(event.choice, event.text, thought=event.thought)
        else:
            results.append((event.choice, event.result))
            _check_finished(task, results[-1:], several=False)
            choices = answer.ended(event.choice, event.result)
        for choice in choices:
            yield answer.chunk([choice])
        event = await anext(events, None)
    _check_finished(task, results)
    if with_usage:
        yield answer.chunk([], usage(results, len(task.prompts)))


def _check_finished(task: Task, results: list[tuple[int, Generation]], *, several: bool = True) -> None:
    """Raises RequestError when an answer is missing: it was cancelled."""
    missing = several and len(results) < len(task.prompts) * task.n
    if missing or any(result.finish_reason == "cancelled" for _, result in results):
        raise RequestError("The request was cancelled.", status=499, code="cancelled")


def _check_model(service: Service, name: str) -> None:
    if name != service.name:
        raise RequestError(
            f"The model {name!r} is not served here; {service.name!r} is.",
            status=404,
            param="model",
            code="model_not_found",
        )


def _seed(asked: Asked) -> int:
    return secrets.randbits(63) if asked.seed is None else asked.seed


def _token_name(model: Model) -> Callable[[int], str]:
    tokenizer = model.tokenizer
    return (lambda token: f"<{token}>") if tokenizer is None else tokenizer.convert_ids_to_tokens
