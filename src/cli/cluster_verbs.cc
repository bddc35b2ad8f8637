#include "cli/cluster_verbs.h"

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"
#include "model/problems.h"
#include "model/spec_codec.h"
#include "sim/replay.h"
#include "state/state.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

}  // namespace

int Nodes(Session& session) {
  return session.Show(session.client().Get("nodes"), [](const Json& got) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& node : got.at("nodes")) {
      std::string types;
      for (const auto& [type, count] : node.at("gpus").items()) {
        types += (types.empty() ? "" : ", ") + count.dump() + " " + type;
      }
      rows.push_back({node.value("name", ""), node.value("pool", ""), node.value("state", ""),
                      Plain(node.at("gpus_in_use")) + "/" + Plain(node.at("gpus_total")), types,
                      Plain(node.at("cpus")),
                      FormatBytes(node.value("memory_bytes", std::int64_t{0}) >> 20 << 20),
                      Mark(node)});
    }
    PrintTable({"NODE", "POOL", "STATE", "IN USE", "GPUS", "CPUS", "MEMORY", ""}, rows);
  });
}

int MarkNode(Session& session, const std::string& node, const std::string& verb,
             const client::Client::Query& query) {
  const auto answer = session.client().Post("nodes/" + node + ":" + verb, query, "");
  return session.Show(answer, [](const Json& got) {
    std::cout << (got.value("dry_run", false) ? "would change: node " : "node ")
              << got.value("id", "") << ": " << got.value("phase", "") << '\n';
  });
}

int Gpus(Session& session) {
  return session.Show(session.client().Get("gpus"), [](const Json& got) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& gpu : got.at("gpus")) {
      std::string jobs, users;
      for (const auto& job : gpu.at("jobs")) {
        jobs += (jobs.empty() ? "" : ", ") + job.value("id", "") + " " + job.value("name", "");
        users += (users.empty() ? "" : ", ") + job.value("user", "");
      }
      rows.push_back({gpu.value("node", ""), Plain(gpu.at("gpu")), gpu.value("type", ""),
                      FormatBytes(gpu.value("memory_bytes", std::int64_t{0})),
                      jobs.empty() ? "free" : jobs, users, Mark(gpu)});
    }
    PrintTable({"NODE", "GPU", "TYPE", "MEMORY", "JOB", "USER", ""}, rows);
  });
}

int Queues(Session& session) {
  return session.Show(session.client().Get("queues"), [](const Json& got) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& queue : got.at("queues")) {
      rows.push_back({queue.value("name", ""), Plain(queue.at("gpu_quota")),
                      Plain(queue.at("gpu_limit")), Plain(queue.at("gpus_held")),
                      Plain(queue.at("gpu_fair_share")), Plain(queue.at("jobs_running")),
                      Plain(queue.at("jobs_waiting")), Mark(queue)});
    }
    PrintTable({"QUEUE", "QUOTA", "LIMIT", "HELD", "SHARE", "RUNNING", "WAITING", ""}, rows);
  });
}

int ApplyQueues(Session& session, const std::string& file, const client::Client::Query& query) {
  auto text = file == "-" ? Result<std::string>(ReadStream(std::cin)) : ReadFile(file);
  if (!text) return Refuse(text.error());
  const auto decoded = model::DecodeSpec(*text);
  for (const auto& problem : decoded.problems.Sorted()) {
    std::cerr << file << ':' << problem.mark.line << ':' << problem.mark.column << ": "
              << model::Describe(problem) << '\n';
  }
  if (decoded.problems.HasErrors()) return ExitStatus(ErrorCode::kInvalid);
  return session.Show(session.client().Post("queues", query, *text), [&](const Json& got) {
    std::cout << (query.empty() ? "applied:" : "would apply:");
    for (const auto& name : got.at("applied")) std::cout << ' ' << name.get<std::string>();
    std::cout << '\n';
  });
}

int SaveSnapshot(Session& session, const std::string& file) {
  const auto bytes = session.client().Get("snapshot");
  if (!bytes) return Refuse(bytes.error());
  std::ofstream out(file, std::ios::binary);
  out << *bytes;
  out.close();
  if (!out) return Refuse({ErrorCode::kDenied, "cannot write " + file, "check the path and room"});
  std::cerr << "saved " << bytes->size() << " bytes; `muster snapshot replay " << file
            << "` decides it again\n";
  if (session.output() == Output::kTable || session.output() == Output::kWide) return 0;
  const auto recording = sim::DecodeRecording(*bytes);
  if (!recording) return Refuse(recording.error());
  const auto begun = state::State::Decode(recording->state);
  if (!begun) return Refuse(begun.error());
  const Json saved = {{"file", file},
                      {"bytes", bytes->size()},
                      {"revision", begun->revision() + recording->records.size()}};
  return session.Show(saved.dump(2), [](const Json&) {});
}

int ReplaySnapshot(const std::string& file, Output output) {
  auto bytes = ReadFile(file, std::size_t{4} << 30);
  if (!bytes) return Refuse(bytes.error());
  const auto recording = sim::DecodeRecording(*bytes);
  if (!recording) return Refuse(recording.error());
  const auto report = sim::Replay(*recording);
  if (!report) return Refuse(report.error());
  if (output == Output::kJson) {
    std::cout << Json{{"events", report->events},
                      {"cycles", report->cycles},
                      {"decisions", report->decisions},
                      {"same", report->same},
                      {"difference", report->difference}}
                     .dump(2)
              << '\n';
  } else {
    std::cout << report->events << " events, " << report->cycles << " cycles, " << report->decisions
              << " decisions: " << (report->same ? "the same decisions" : report->difference)
              << '\n';
  }
  return report->same ? 0 : 1;
}

}  // namespace muster::cli
