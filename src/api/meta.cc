#include "api/meta.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/units.h"
#include "net/tls.h"

namespace muster::api {

using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

DocNode Status(const char* status) {
  DocNode node = MapNode();
  Put(node, "status", TextNode(status));
  return node;
}

// "a\"b\\c\n" inside the quotes of a label.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

class Exposition {
 public:
  void Head(const char* name, const char* type, const char* help) {
    fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                   type);
  }
  void Value(const char* name, double value) { Value(name, "", "", value); }
  void Value(const char* name, const char* label, std::string_view of, double value) {
    const auto labels =
        *label == '\0' ? std::string() : fmt::format("{{{}=\"{}\"}}", label, Escaped(of));
    fmt::format_to(std::back_inserter(text_), "{}{} {}\n", name, labels, value);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void AddJobs(const state::State& state, const Access& access, Exposition& out) {
  std::map<std::string, std::int64_t> phases;
  for (const auto& [id, job] : state.jobs()) {
    if (!job.ending && access.Sees(job.user, job.spec->queue))
      ++phases[std::string(state::Name(PhaseOf(job)))];
  }
  out.Head("muster_jobs", "gauge", "Jobs that have not ended and may be seen, by phase.");
  for (const auto& [phase, count] : phases) {
    out.Value("muster_jobs", "phase", phase, static_cast<double>(count));
  }
  out.Head("muster_jobs_ended_total", "counter", "Jobs that have ended.");
  out.Value("muster_jobs_ended_total", static_cast<double>(state.ended_jobs()));
  out.Head("muster_revision", "counter", "Events in the journal so far.");
  out.Value("muster_revision", static_cast<double>(state.revision()));
}

void AddCluster(Controller& control, const Access& access, Exposition& out) {
  std::map<std::string, double> nodes, gpus, used, virtual_gpus;
  const auto& cluster = control.engine().cluster();
  for (const auto& [name, record] : control.state().nodes()) {
    const char* state = !record.up             ? "down"
                        : record.node.draining ? "draining"
                        : record.node.cordoned ? "cordoned"
                                               : "ready";
    nodes[state] += 1;
    const bool real =
        !record.node.labels.contains("virtual") && !record.node.labels.contains("simulated");
    const char* kind = real                                     ? "real"
                       : record.node.labels.contains("virtual") ? "virtual"
                                                                : "simulated";
    gpus[kind] += static_cast<double>(record.node.gpus.size());
    const auto id = cluster.FindNode(name);
    for (std::uint32_t i = 0; id != engine::kNone && i < cluster.nodes().node(id).device_count;
         ++i) {
      used[kind] += cluster.nodes().device(id, i).occupants[0] > 0 ? 1 : 0;
    }
  }
  out.Head("muster_nodes", "gauge", "Nodes, by state.");
  for (const auto& [state, count] : nodes) out.Value("muster_nodes", "state", state, count);
  out.Head("muster_gpus", "gauge", "GPUs, by what they are: real, virtual or simulated.");
  for (const auto& [kind, count] : gpus) out.Value("muster_gpus", "kind", kind, count);
  out.Head("muster_gpus_in_use", "gauge", "GPUs that a worker holds.");
  for (const auto& [kind, count] : gpus) out.Value("muster_gpus_in_use", "kind", kind, used[kind]);
  const auto& queues = cluster.queues();
  out.Head("muster_queue_gpus_held", "gauge", "GPUs that the jobs of a queue hold.");
  for (const auto& spec : control.state().queues()) {
    const auto id = queues.Find(spec.name);
    if (id == engine::kNone || access.On(spec.name) < control::Role::kViewer) continue;
    out.Value("muster_queue_gpus_held", "queue", spec.name,
              static_cast<double>(queues[id].held[engine::kGpuDim]) / kMilli);
  }
}

}  // namespace

void GetHealth(Desk& desk, const Call& call) {
  desk.Read(call, [](Controller&, const Access&) -> Result<Answer> { return Status("ok"); });
}

// An empty change: it is answered when the store takes it.
void GetReady(Desk& desk, const Call& call) {
  desk.service().Change([](Controller&) {},
                        [call](const Result<void>& written) {
                          if (!written) return ReplyError(*call.exchange, written.error());
                          ReplyNode(*call.exchange, Status("ready"), 200);
                        });
}

namespace {

DocNode Folder(const std::string& path) {
  DocNode node = MapNode();
  Put(node, "path", TextNode(path));
  std::error_code failed;
  const auto room = std::filesystem::space(path, failed);
  if (failed) return node;
  Put(node, "free_bytes", NumberNode(static_cast<std::int64_t>(room.available)));
  Put(node, "size_bytes", NumberNode(static_cast<std::int64_t>(room.capacity)));
  return node;
}

DocNode HostView(const control::Host& host) {
  DocNode node = MapNode();
  if (!host.state.empty()) Put(node, "state", Folder(host.state));
  if (!host.run.empty()) Put(node, "run", Folder(host.run));
  if (host.certificate.empty()) return node;
  DocNode certificate = MapNode();
  Put(certificate, "path", TextNode(host.certificate));
  if (const auto end_ms = net::CertificateEndMs(host.certificate)) {
    Put(certificate, "expires_at", TextNode(FormatTimeMs(*end_ms)));
  }
  Put(node, "certificate", std::move(certificate));
  return node;
}

}  // namespace

void GetVersion(Desk& desk, const Call& call) {
  desk.Read(
      call,
      [version = desk.version()](Controller& control, const Access& access) -> Result<Answer> {
        DocNode node = MapNode();
        Put(node, "version", TextNode(version));
        Put(node, "now", TextNode(FormatTimeMs(control.NowMs())));
        Put(node, "revision", NumberNode(static_cast<std::int64_t>(control.state().revision())));
        Put(node, "jobs", NumberNode(static_cast<std::int64_t>(control.state().live_jobs())));
        Put(node, "ended", NumberNode(static_cast<std::int64_t>(control.state().ended_jobs())));
        if (access.IsAdmin()) Put(node, "host", HostView(control.settings().host));
        return node;
      });
}

void GetOpenApi(Desk& desk, const Call& call, const model::DocNode& document) {
  (void)desk;
  ReplyNode(*call.exchange, document, 200);
}

void GetMetrics(Desk& desk, const Call& call, Figures figures) {
  desk.Begin(call,
             [call, figures = std::move(figures)](Controller& control,
                                                  const Access& access) -> Result<void> {
               Exposition out;
               AddJobs(control.state(), access, out);
               AddCluster(control, access, out);
               out.Head("muster_requests_total", "counter", "Requests, by operation.");
               for (const auto& [operation, count] : figures.requests) {
                 out.Value("muster_requests_total", "operation", operation,
                           static_cast<double>(count));
               }
               out.Head("muster_watchers", "gauge", "Streams of events that are open.");
               out.Value("muster_watchers", static_cast<double>(figures.watchers));
               const auto statm = ReadFile("/proc/self/statm", 256).value_or("0 0");
               const auto pages = std::strtoll(statm.c_str() + statm.find(' '), nullptr, 10);
               out.Head("process_resident_memory_bytes", "gauge", "Memory of the daemon.");
               out.Value("process_resident_memory_bytes",
                         static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)));
               net::Response response;
               response.content_type = "text/plain; version=0.0.4; charset=utf-8";
               response.body = out.Take();
               call.exchange->Reply(std::move(response));
               return {};
             });
}

}  // namespace muster::api
