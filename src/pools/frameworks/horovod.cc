#include <fmt/format.h>

#include "pools/frameworks/recipes.h"

namespace muster::pools {
namespace {

constexpr std::string_view kHosts = "horovod_hosts";
constexpr std::string_view kDiscovery = "horovod_discovery.sh";
constexpr std::string_view kRendezvous = "horovod_rendezvous.py";

constexpr std::string_view kDiscoveryBody = R"sh(#!/bin/sh
# Horovod asks this again and again; the file beside it is rewritten when the job is resized.
exec cat "$(dirname "$0")/horovod_hosts"
)sh";

// Horovod's processes find each other in a store of keys under HTTP, which horovodrun would serve.
// Without horovodrun the first worker serves it, beside the program.
constexpr std::string_view kRendezvousBody = R"py(#!/usr/bin/env python3
"""horovod_rendezvous.py PORT COMMAND...: serves Horovod's store of keys while COMMAND runs."""
import http.server
import os
import signal
import subprocess
import sys
import threading

kept, lock = {}, threading.Lock()


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        with lock:
            kept[self.path] = body
        self.answer(200)

    def do_GET(self):
        with lock:
            body = kept.get(self.path)
        self.answer(404) if body is None else self.answer(200, body)

    def do_DELETE(self):
        with lock:
            kept.pop(self.path, None)
        self.answer(200)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 1024


port = int(sys.argv[1])
server = Server((os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"], port), Store)
threading.Thread(target=server.serve_forever, daemon=True).start()
child = None
waiting = []


def forward(number, _):
    if child is None:
        waiting.append(number)
    elif child.poll() is None:
        child.send_signal(number)


for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, forward)
try:
    child = subprocess.Popen(sys.argv[2:])
except OSError as error:
    sys.exit(f"horovod: cannot start {sys.argv[2]}: {error.strerror}")
for number in waiting:
    child.send_signal(number)
status = child.wait()
if status < 0:  # ended by a signal: end by the same
    signal.signal(-status, signal.SIG_DFL)
    os.kill(os.getpid(), -status)
sys.exit(status)
)py";

std::string HostLines(const std::vector<Host>& hosts, char end) {
  std::string text;
  for (const Host& host : hosts)
    text += fmt::format("{}:{}{}", host.host, host.members.size(), end);
  return text;
}

void SetPlaces(const GangView& gang, int rank, WorkerSetup& setup) {
  const Seat seat = SeatOf(gang, rank);
  auto& env = setup.env;
  env["HOROVOD_RANK"] = std::to_string(rank);
  env["HOROVOD_SIZE"] = std::to_string(gang.members.size());
  env["HOROVOD_LOCAL_RANK"] = std::to_string(seat.local_rank);
  env["HOROVOD_LOCAL_SIZE"] = std::to_string(seat.local_size);
  env["HOROVOD_CROSS_RANK"] = std::to_string(seat.group_rank);
  env["HOROVOD_CROSS_SIZE"] = std::to_string(seat.group_size);
  env["HOROVOD_HOSTNAME"] = MemberOf(gang, rank).host;
  env["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = Leader(gang).host;
  env["HOROVOD_GLOO_RENDEZVOUS_PORT"] = PortText(gang, Port::kHorovod);
  env["HOROVOD_CONTROLLER"] = "gloo";
  env["HOROVOD_CPU_OPERATIONS"] = "gloo";
}

// horovodrun reads no variables for what it must know, so its options are put in for it.
void SetLauncher(const GangView& gang, const std::vector<Host>& hosts, WorkerSetup& setup) {
  const Workers workers = WorkersOf(gang.spec);
  std::vector<std::string> options{"--gloo", "-np", std::to_string(gang.members.size())};
  if (workers.minimum < workers.maximum) {
    options.insert(options.end(), {"--min-np", std::to_string(workers.minimum), "--max-np",
                                   std::to_string(workers.maximum), "--host-discovery-script",
                                   fmt::format("{}/{}", gang.job_dir, kDiscovery)});
  } else {
    std::string list = HostLines(hosts, ',');
    list.pop_back();
    options.insert(options.end(), {"-H", list});
  }
  setup.command.insert(setup.command.begin() + 1, options.begin(), options.end());
  setup.devices = hosts.front().devices;
}

}  // namespace

Result<void> SetUpHorovod(const GangView& gang, int rank, WorkerSetup& setup) {
  if (setup.command.empty()) {
    return Fail(ErrorCode::kInvalid, "framework horovod needs a command", "write `command: [...]`");
  }
  const bool launched = Starts(setup.command, "horovodrun");
  if (!launched) SetPlaces(gang, rank, setup);
  if (rank != 0) {
    if (launched) HoldPlace(setup);
    return {};
  }
  const std::vector<Host> hosts = Hosts(gang);
  setup.files.push_back({std::string(kHosts), HostLines(hosts, '\n'), false});
  setup.files.push_back({std::string(kDiscovery), std::string(kDiscoveryBody), true});
  setup.env["MUSTER_HOROVOD_DISCOVERY"] = fmt::format("{}/{}", gang.job_dir, kDiscovery);
  if (launched) {
    SetLauncher(gang, hosts, setup);
    return {};
  }
  setup.files.push_back({std::string(kRendezvous), std::string(kRendezvousBody), true});
  setup.command.insert(setup.command.begin(), {fmt::format("{}/{}", gang.job_dir, kRendezvous),
                                               PortText(gang, Port::kHorovod)});
  return {};
}

}  // namespace muster::pools
