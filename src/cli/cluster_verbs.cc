#include "cli/cluster_verbs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/files.h"
#include "base/units.h"
#include "cli/text.h"
#include "model/problems.h"
#include "model/spec_codec.h"
#include "sim/past/past_file.h"
#include "sim/replay.h"
#include "state/state.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

std::string HeldBy(const Json& gpu, const char* key) {
  std::string list;
  const auto& status = gpu.at("status");
  for (const auto& job : status.at("jobs")) {
    list += (list.empty() ? "" : ", ") + (std::string_view(key) == "job"
                                              ? job.value("id", "") + " " + job.value("name", "")
                                              : job.value(key, ""));
  }
  const auto others = status.value("others", 0);
  if (others > 0 && std::string_view(key) == "job") {
    list += (list.empty() ? "" : ", ") + std::to_string(others) + " of others";
  }
  return list;
}

bool IsFree(const Json& gpu) { return gpu.at("status").value("phase", "") == "free"; }

// GPUs that hang on the same NUMA node, switch and island, a row for each such group.
void PrintTopology(const Session& session, const Json& got, const Json& nodes) {
  std::string levels;
  for (const auto& level : got.at("levels")) {
    levels += (levels.empty() ? "" : " > ") + level.value("level", "") + " (" +
              std::to_string(level.at("domains").size()) + ")";
  }
  std::cout << "levels: " << levels << "\n\n";
  struct Group {
    std::string gpus, type, mark;
    int count = 0, free = 0;
  };
  std::map<std::tuple<std::string, int, int, int>, Group> groups;
  for (const auto& gpu : got.at("gpus")) {
    const auto& spec = gpu.at("spec");
    auto& group = groups[{spec.value("node", ""), spec.value("numa", 0),
                          spec.value("pcie_switch", -1), spec.value("nvlink_island", -1)}];
    group.gpus += (group.gpus.empty() ? "" : ",") + Plain(spec.at("gpu"));
    group.type = spec.value("type", "");
    group.mark = Mark(gpu);
    ++group.count;
    group.free += IsFree(gpu) ? 1 : 0;
  }
  Rows rows;
  std::string before;
  for (const auto& [key, group] : groups) {
    const auto& [node, numa, pcie, nvlink] = key;
    std::string nics;
    for (const auto& one : nodes.at("nodes")) {
      if (one.value("name", "") != node) continue;
      for (const auto& nic : one.at("spec").value("nics", Json::array())) {
        if (nic.value("numa", 0) == numa) nics += (nics.empty() ? "" : ",") + nic.value("name", "");
      }
    }
    const auto number = [](int n) { return n < 0 ? std::string("-") : std::to_string(n); };
    rows.push_back({node == before ? "" : node, std::to_string(numa), number(pcie), number(nvlink),
                    group.gpus, group.type,
                    std::to_string(group.free) + " of " + std::to_string(group.count), nics,
                    group.mark});
    before = node;
  }
  session.Table({"NODE", "NUMA", "PCIE", "NVLINK", "GPUS", "TYPE", "FREE", "NICS", "NOTE"}, rows);
}

// Both lists in one document.
int GpuTopology(Session& session) {
  const auto gpus = session.List("gpus");
  const auto levels = session.client().Get("topology");
  const auto nodes = AllPages(session.client(), "nodes");
  for (const auto* one : {&gpus, &levels, &nodes}) {
    if (!*one) return Refuse(one->error());
  }
  auto document = nlohmann::ordered_json::parse(*gpus);
  document["levels"] = nlohmann::ordered_json::parse(*levels).at("levels");
  return session.Show(document.dump(2),
                      [&](const Json& got) { PrintTopology(session, got, Json::parse(*nodes)); });
}

// A new file, or over the old one where that was allowed.
Result<void> WriteNew(const std::string& file, const std::string& bytes, bool over) {
  const int made = ::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | (over ? 0 : O_EXCL), 0666);
  if (made < 0 && errno == EEXIST) {
    return Fail(ErrorCode::kConflict, file + " is there already; it was not touched",
                "give another name, or --yes to write over it");
  }
  if (made < 0) return tl::unexpected(WriteError(file, errno));
  ::close(made);
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << bytes;
  out.close();
  if (!out) return Fail(ErrorCode::kDenied, "cannot write " + file, "check the path and room");
  return {};
}

}  // namespace

int Nodes(Session& session) {
  return session.Show(session.List("nodes"), [&](const Json& got) {
    Rows rows;
    for (const auto& node : got.at("nodes")) {
      const auto &spec = node.at("spec"), &status = node.at("status");
      std::string types, labels;
      for (const auto& [type, count] : spec.at("gpus").items()) {
        types += (types.empty() ? "" : ", ") + count.dump() + " " + type;
      }
      for (const auto& [key, value] : node.at("labels").items()) {
        labels += (labels.empty() ? "" : ",") + key + "=" + Plain(value);
      }
      const auto reasons = status.value("reasons", Json::array());
      rows.push_back({node.value("name", ""), spec.value("pool", ""), status.value("phase", ""),
                      Plain(status.at("gpus_in_use")) + "/" + Plain(spec.at("gpus_total")), types,
                      Plain(spec.at("cpus")),
                      FormatBytes(spec.value("memory_bytes", std::int64_t{0}) >> 20 << 20),
                      session.wide() ? labels : "",
                      reasons.empty() ? Mark(node) : Plain(reasons.at(0))});
    }
    session.Table({"NODE", "POOL", "STATE", "IN USE", "GPUS", "CPUS", "MEMORY",
                   session.wide() ? "LABELS" : "", "NOTE"},
                  rows, {"POOL", "MEMORY", "CPUS"});
  });
}

int MarkNode(Session& session, const std::string& node, const std::string& verb,
             const client::Client::Query& query) {
  const auto answer = session.client().Post("nodes/" + node + ":" + verb, query, "");
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [](const Json& got) {
    std::cout << (got.value("dry_run", false) ? "would change: node " : "node ")
              << got.value("name", "") << ": " << got.value("phase", "") << '\n';
  });
}

int Gpus(Session& session, bool topology) {
  if (topology) return GpuTopology(session);
  return session.Show(session.List("gpus"), [&](const Json& got) {
    Rows rows;
    for (const auto& gpu : got.at("gpus")) {
      const auto& spec = gpu.at("spec");
      const auto phase = gpu.at("status").value("phase", "");
      const auto where = [&](const char* key) {
        return !session.wide() ? "" : spec.contains(key) ? Plain(spec.at(key)) : "-";
      };
      rows.push_back({spec.value("node", ""), Plain(spec.at("gpu")), spec.value("type", ""),
                      FormatBytes(spec.value("memory_bytes", std::int64_t{0})), where("numa"),
                      where("pcie_switch"), where("nvlink_island"),
                      phase == "held" ? HeldBy(gpu, "job") : phase, HeldBy(gpu, "user"),
                      session.wide() ? HeldBy(gpu, "queue") : "", Mark(gpu)});
    }
    const auto more = [&](const char* name) { return session.wide() ? name : ""; };
    session.Table({"NODE", "GPU", "TYPE", "MEMORY", more("NUMA"), more("PCIE"), more("NVLINK"),
                   "JOB", "USER", more("QUEUE"), "NOTE"},
                  rows, {"MEMORY", "USER", "TYPE"});
  });
}

int Queues(Session& session) {
  return session.Show(session.List("queues"), [&](const Json& got) {
    Rows rows;
    for (const auto& queue : got.at("queues")) {
      const auto cell = [&status = queue.at("status")](const char* key) {
        return status.contains(key) ? Plain(status.at(key)) : "";
      };
      rows.push_back({queue.value("name", ""), cell("gpu_quota"), cell("gpu_limit"),
                      cell("gpus_held"), cell("gpu_fair_share"), cell("jobs_running"),
                      cell("jobs_waiting")});
      if (session.wide()) {
        const auto& spec = queue.at("spec");
        rows.back().push_back(cell("gpus_asked"));
        for (const char* key : {"weight", "priority"}) {
          rows.back().push_back(spec.contains(key) ? Plain(spec.at(key)) : "-");
        }
      }
      rows.back().push_back(Mark(queue));
    }
    std::vector<std::string> head = {"QUEUE", "QUOTA",   "LIMIT",  "HELD",
                                     "SHARE", "RUNNING", "WAITING"};
    if (session.wide()) head.insert(head.end(), {"ASKED", "WEIGHT", "PRIORITY"});
    head.emplace_back("NOTE");
    session.Table(head, rows, {"NOTE", "SHARE", "LIMIT"});
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
  const auto answer = session.client().Post("queues", query, *text);
  if (!answer) return Refuse(answer.error());
  const bool tried = query.contains("dry_run");
  nlohmann::ordered_json document;
  const auto got = nlohmann::ordered_json::parse(*answer);
  for (const auto& name : got.at("applied")) {
    document["queues"].push_back({{"id", name}, {"name", name}});
    if (tried) document["queues"].back()["dry_run"] = true;
  }
  return session.Show(document.dump(2), [tried](const Json& shown) {
    std::cout << (tried ? "would apply:" : "applied:");
    for (const auto& queue : shown.at("queues")) std::cout << ' ' << queue.value("name", "");
    std::cout << '\n';
  });
}

int SaveSnapshot(Session& session, const std::string& file, bool over) {
  const auto bytes = session.client().Get("snapshots");
  if (!bytes) return Refuse(bytes.error());
  if (auto written = WriteNew(file, *bytes, over); !written) return Refuse(written.error());
  std::cerr << "saved " << bytes->size() << " bytes; `muster snapshot replay " << file
            << "` decides it again\n";
  if (session.for_people()) return 0;
  const auto recording = sim::DecodeRecording(*bytes);
  if (!recording) return Refuse(recording.error());
  const auto begun = state::State::Decode(recording->state);
  if (!begun) return Refuse(begun.error());
  const nlohmann::ordered_json saved = {
      {"name", file},
      {"file", file},
      {"bytes", bytes->size()},
      {"revision", begun->revision() + recording->records.size()}};
  return session.Show(saved.dump(2), [](const Json&) {});
}

int SavePast(Session& session, const std::string& file, const std::string& since, bool over) {
  if (!since.empty() && !ParseDurationMs(since)) {
    return Refuse(
        {ErrorCode::kUsage, "--since: \"" + since + "\" is no duration", "write it as 24h or 7d"});
  }
  const auto bytes =
      session.client().Get("snapshots/past", {{"since", since.empty() ? "7d" : since}});
  if (!bytes) return Refuse(bytes.error());
  const auto past = sim::DecodePast(*bytes);
  if (!past) return Refuse(past.error());
  if (auto written = WriteNew(file, *bytes, over); !written) return Refuse(written.error());
  std::cerr << "saved " << Count(static_cast<std::int64_t>(past->past.jobs.size()), "job")
            << "; `muster policy diff POLICY --past " << file << "` replays them anywhere\n";
  if (session.for_people()) return 0;
  const nlohmann::ordered_json saved = {
      {"name", file}, {"file", file}, {"bytes", bytes->size()}, {"jobs", past->past.jobs.size()}};
  return session.Show(saved.dump(2), [](const Json&) {});
}

int ReplaySnapshot(const std::string& file, Output output) {
  auto bytes = ReadFile(file, std::size_t{4} << 30);
  if (!bytes) return Refuse(bytes.error());
  const auto recording = sim::DecodeRecording(*bytes);
  if (!recording) return Refuse(recording.error());
  const auto report = sim::Replay(*recording);
  if (!report) return Refuse(report.error());
  const nlohmann::ordered_json document = {{"events", report->events},
                                           {"cycles", report->cycles},
                                           {"decisions", report->decisions},
                                           {"same", report->same},
                                           {"difference", report->difference}};
  Session session(client::Target{}, output);
  const int shown = session.Show(document.dump(2), [](const Json& got) {
    std::cout << Plain(got.at("events")) << " events, " << Plain(got.at("cycles")) << " cycles, "
              << Plain(got.at("decisions")) << " decisions: "
              << (got.value("same", false) ? "the same decisions" : got.value("difference", ""))
              << '\n';
  });
  return shown != 0 ? shown : report->same ? 0 : 1;
}

}  // namespace muster::cli
