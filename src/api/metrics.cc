#include "api/metrics.h"

#include <unistd.h>

#include <array>
#include <map>

#include "api/exposition.h"
#include "base/files.h"
#include "base/units.h"

namespace muster::api {
namespace {

void AddJobs(const state::State& state, const Access& access, Exposition& out) {
  std::map<std::string, std::int64_t> phases;
  for (const auto& [id, job] : state.jobs()) {
    if (!job.ending && access.Sees(job.user, job.spec->queue))
      ++phases[std::string(state::Name(PhaseOf(job)))];
  }
  out.Head("muster_jobs", "gauge", "Jobs that have not ended and may be seen, by phase.");
  for (const auto& [phase, count] : phases) {
    out.Value("muster_jobs", {{"phase", phase}}, static_cast<double>(count));
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
  for (const auto& [state, count] : nodes) out.Value("muster_nodes", {{"state", state}}, count);
  out.Head("muster_gpus", "gauge", "GPUs, by what they are: real, virtual or simulated.");
  for (const auto& [kind, count] : gpus) out.Value("muster_gpus", {{"kind", kind}}, count);
  out.Head("muster_gpus_in_use", "gauge", "GPUs that a worker holds.");
  for (const auto& [kind, count] : gpus)
    out.Value("muster_gpus_in_use", {{"kind", kind}}, used[kind]);
  const auto& queues = cluster.queues();
  out.Head("muster_queue_gpus_held", "gauge", "GPUs that the jobs of a queue hold.");
  for (const auto& spec : control.state().queues()) {
    const auto id = queues.Find(spec.name);
    if (id == engine::kNone || access.On(spec.name) < control::Role::kViewer) continue;
    out.Value("muster_queue_gpus_held", {{"queue", spec.name}},
              static_cast<double>(queues[id].held[engine::kGpuDim]) / kMilli);
  }
}

void AddVitals(Controller& control, Exposition& out) {
  const auto& vitals = control.vitals();
  out.Head("muster_store_commit_seconds", "histogram", "How long commits of the journal took.");
  out.Buckets("muster_store_commit_seconds", {}, vitals.commits);
  out.Head("muster_store_commit_errors_total", "counter", "Commits that failed.");
  out.Value("muster_store_commit_errors_total", static_cast<double>(vitals.commit_errors));
  out.Head("muster_store_writable", "gauge", "1 when the last commit went well, else 0.");
  out.Value("muster_store_writable", vitals.writable ? 1 : 0);
  out.Head("muster_store_bytes", "gauge", "What the store takes on its disk.");
  out.Value("muster_store_bytes", static_cast<double>(control.store().Bytes()));
  out.Head("muster_scheduler_cycle_seconds", "histogram", "How long cycles of the engine took.");
  out.Buckets("muster_scheduler_cycle_seconds", {}, vitals.cycles);
}

void AddRequests(const Meter& meter, Exposition& out) {
  const auto rows = meter.Rows();
  const auto name = [](const std::string& operation) {
    return operation.empty() ? std::string_view("none") : std::string_view(operation);
  };
  out.Head("muster_requests_total", "counter", "Requests, by operation.");
  for (const auto& [operation, row] : rows) {
    out.Value("muster_requests_total", {{"operation", name(operation)}},
              static_cast<double>(row.requests));
  }
  out.Head("muster_http_answers_total", "counter", "Answers, by operation and class of status.");
  constexpr std::array<std::string_view, 6> kClasses = {"", "1xx", "2xx", "3xx", "4xx", "5xx"};
  for (const auto& [operation, row] : rows) {
    for (std::size_t i = 1; i < kClasses.size(); ++i) {
      if (row.answers[i] == 0) continue;
      out.Value("muster_http_answers_total",
                {{"operation", name(operation)}, {"class", kClasses[i]}},
                static_cast<double>(row.answers[i]));
    }
  }
  out.Head("muster_http_answer_seconds", "histogram",
           "From a whole request to its answer, or to the beginning of its stream.");
  for (const auto& [operation, row] : rows) {
    if (row.took.count() == 0) continue;
    out.Buckets("muster_http_answer_seconds", {{"operation", name(operation)}}, row.took);
  }
  out.Head("muster_http_streams", "gauge", "Answers that are being streamed: events and logs.");
  out.Value("muster_http_streams", static_cast<double>(meter.streams()));
  out.Head("muster_http_websockets_total", "counter", "WebSockets that were opened.");
  out.Value("muster_http_websockets_total", static_cast<double>(meter.sockets()));
}

void AddProcess(Exposition& out) {
  const auto statm = ReadFile("/proc/self/statm", 256).value_or("0 0");
  const auto pages = std::strtoll(statm.c_str() + statm.find(' '), nullptr, 10);
  out.Head("process_resident_memory_bytes", "gauge", "Memory of the daemon.");
  out.Value("process_resident_memory_bytes", static_cast<double>(pages * ::sysconf(_SC_PAGESIZE)));
}

}  // namespace

void GetMetrics(Desk& desk, const Call& call, const std::shared_ptr<const Meter>& meter,
                std::size_t watchers) {
  const auto connections = desk.server()->connections();
  desk.Begin(call,
             [call, meter, watchers, connections](Controller& control,
                                                  const Access& access) -> Result<void> {
               Exposition out;
               AddJobs(control.state(), access, out);
               AddCluster(control, access, out);
               AddVitals(control, out);
               AddRequests(*meter, out);
               out.Head("muster_watchers", "gauge", "Streams of events that are open.");
               out.Value("muster_watchers", static_cast<double>(watchers));
               out.Head("muster_http_connections", "gauge", "Connections that are open.");
               out.Value("muster_http_connections", static_cast<double>(connections));
               AddProcess(out);
               net::Response response;
               response.content_type = "text/plain; version=0.0.4; charset=utf-8";
               response.body = out.Take();
               call.exchange->Reply(std::move(response));
               return {};
             });
}

}  // namespace muster::api
