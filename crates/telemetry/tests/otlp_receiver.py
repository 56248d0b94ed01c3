"""A receiver of OTLP spans on the official messages: gRPC and HTTP, plain or with TLS.

Prints its ports as one JSON line, takes what is sent until standard input closes, then prints one JSON line
per batch: the headers it came with, and every span with types and values as protobuf has them.
Arguments: a folder for certificates, and what to answer first ("fail:N" has N batches refused as unavailable,
"reject:N" says that N spans of every batch were not wanted, "deny" refuses for good).
"""

import json
import ssl
import sys
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import grpc
import trustme
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc

FOLDER, MANNER = Path(sys.argv[1]), sys.argv[2]
LOCK = threading.Lock()
BATCHES, LEFT = [], [int(MANNER[5:]) if MANNER.startswith("fail:") else 0]


def value(any_value):
    kind = any_value.WhichOneof("value")
    return [kind, getattr(any_value, kind)]


def span(scope, message):
    return {
        "scope": scope.name,
        "trace": message.trace_id.hex(),
        "id": message.span_id.hex(),
        "parent": message.parent_span_id.hex(),
        "name": message.name,
        "kind": message.kind,
        "flags": message.flags,
        "start": message.start_time_unix_nano,
        "end": message.end_time_unix_nano,
        "attributes": {pair.key: value(pair.value) for pair in message.attributes},
        "status": [message.status.code, message.status.message],
    }


def take(door, headers, request):
    """Whether the batch was taken, and the answer."""
    with LOCK:
        if LEFT[0] > 0:
            LEFT[0] -= 1
            return False, None
        for group in request.resource_spans:
            resource = {pair.key: value(pair.value) for pair in group.resource.attributes}
            spans = [span(found.scope, message) for found in group.scope_spans for message in found.spans]
            BATCHES.append({"door": door, "headers": headers, "resource": resource, "spans": spans})
    answer = trace_service_pb2.ExportTraceServiceResponse()
    if MANNER.startswith("reject:"):
        answer.partial_success.rejected_spans = int(MANNER[7:])
        answer.partial_success.error_message = "not wanted"
    return True, answer


class Service(trace_service_pb2_grpc.TraceServiceServicer):
    def Export(self, request, context):
        if MANNER == "deny":
            context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")
        taken, answer = take("grpc", dict(context.invocation_metadata()), request)
        if not taken:
            context.abort(grpc.StatusCode.UNAVAILABLE, "come back")
        return answer


class Post(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        is_right = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
        if not is_right or MANNER == "deny":
            return self.answer(401 if MANNER == "deny" else 404, b"who are you?")
        request = trace_service_pb2.ExportTraceServiceRequest.FromString(body)
        headers = {name.lower(): text for name, text in self.headers.items()}
        taken, answer = take("http", headers, request)
        self.answer(200 if taken else 503, answer.SerializeToString() if taken else b"come back")

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def certificates():
    authority = trustme.CA()
    own = authority.issue_cert("localhost", "127.0.0.1")
    authority.cert_pem.write_to_path(str(FOLDER / "ca.pem"))
    own.private_key_pem.write_to_path(str(FOLDER / "key.pem"))
    own.cert_chain_pems[0].write_to_path(str(FOLDER / "cert.pem"))
    return (FOLDER / "key.pem").read_bytes(), (FOLDER / "cert.pem").read_bytes()


def main():
    key, chain = certificates()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(Service(), server)
    ports = {
        "grpc": server.add_insecure_port("127.0.0.1:0"),
        "grpcs": server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)])),
    }
    server.start()
    for name in ("http", "https"):
        door = ThreadingHTTPServer(("127.0.0.1", 0), Post)
        if name == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(FOLDER / "cert.pem", FOLDER / "key.pem")
            door.socket = context.wrap_socket(door.socket, server_side=True)
        ports[name] = door.server_port
        threading.Thread(target=door.serve_forever, daemon=True).start()
    print(json.dumps(ports), flush=True)
    sys.stdin.read()
    server.stop(0)
    with LOCK:
        for batch in BATCHES:
            print(json.dumps(batch))


main()
