// Why a job waits: one sentence, then the facts behind it, and what would start it.
#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/event_text.h"
#include "cli/job_verbs.h"
#include "cli/text.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

// In lines that break between words where it is longer than the window.
std::vector<std::string> Lines(const std::string& text, std::size_t indent) {
  const auto columns = SheetNow().columns;
  return columns == 0 ? std::vector<std::string>{text} : Wrap(text, columns, indent);
}

void Line(const char* name, const std::string& value) {
  constexpr std::size_t kName = 11;
  for (const auto& line : Lines("  " + Pad(name, kName) + value, kName + 2)) {
    std::cout << line << '\n';
  }
}

// "job 7 resnet is waiting: ...", the phase in its colour.
void Headline(const Explained& told) {
  auto lines = Lines(told.before + told.phase + told.after + ".", 0);
  const auto at = told.before.size();
  if (lines.front().size() >= at + told.phase.size()) {
    lines.front().replace(at, told.phase.size(), Paint(told.phase, SheetNow().color));
  }
  for (const auto& line : lines) std::cout << line << '\n';
}

// The engine's word for what a node lacks, as people say it.
std::string Lack(const std::string& filter) {
  for (const auto& [word, said] : {std::pair{"fits", "it fits there"},
                                   {"confined", "it may not run there"},
                                   {"gpu-type", "other types of GPU"},
                                   {"gpu-memory", "too little GPU memory"},
                                   {"gpus", "too few free GPUs"},
                                   {"cores", "too few free cores"},
                                   {"memory", "too little free memory"},
                                   {"countable", "too little of another resource"},
                                   {"workers", "no place for one more worker"}}) {
    if (filter == word) return said;
  }
  return filter;
}

void Facts(const Json& got) {
  if (got.contains("share")) {
    const auto& share = got.at("share");
    Line("share", "quota " + Plain(share.at("quota")) + ", held " + Plain(share.at("held")) +
                      ", fair share now " + Plain(share.at("fair_share")) + "; " +
                      Count(got.value("jobs_ahead", 0), "job") + " ahead in its queue");
    Line("room",
         fmt::format("for {} of {} now, for {} if all preemptible work left",
                     got.value("fit_now", 0), Count(got.value("workers_needed", 0), "worker"),
                     got.value("fit_if_preemptible_work_left", 0)));
  }
  std::string nodes;
  const auto filters = got.value("nodes_by_filter", Json::object());
  for (const auto& [filter, count] : filters.items()) {
    nodes += (nodes.empty() ? "" : ", ") + Lack(filter) + " (" + count.dump() + ")";
  }
  if (!nodes.empty()) Line("nodes", nodes);
  if (got.contains("nearest_fit")) {
    const auto& nearest = got.at("nearest_fit");
    const auto missing = nearest.value("gpus_missing", 0);
    Line("nearest", nearest.value("node", "") + ": " +
                        (missing > 0 ? Count(missing, "GPU") + " missing"
                                     : Lack(nearest.value("missing", ""))));
  }
  for (const auto& holder : got.value("held_by", Json::array())) {
    const auto gpus = Plain(holder.at("gpus"));
    Line("held by", "queue " + holder.value("queue", "") + ": " + gpus +
                        (gpus == "1" ? " GPU, " : " GPUs, ") + holder.value("right", ""));
  }
}

}  // namespace

int Why(Session& session, const std::string& job) {
  return session.Show(session.client().Get("jobs/" + job + "/explain"), [](const Json& got) {
    const auto phase = got.value("phase", "");
    const bool runs = phase == "running" || phase == "starting";
    Headline(TellWhy("job " + got.value("id", "") + " " + got.value("name", ""), got));
    Facts(got);
    if (got.contains("kept")) {
      const auto& kept = got.at("kept");
      Line("kept for", kept.value("for", "") + ", from " + Clock(TimeMs(kept, "from")) + " on");
    }
    for (const auto& one : got.value("displaced", Json::array())) {
      Line("displaced", "job " + one.value("job", "") + " " + one.value("name", "") + ": " +
                            Count(one.value("workers", 0), "worker") + " " + one.value("what", "") +
                            " by rule " + one.value("rule", ""));
    }
    if (got.contains("estimate")) Line("estimate", "it will " + TellStart(got.at("estimate")));
    for (const auto& change : got.value("would_start_it", Json::array())) {
      Line(runs ? "grows if" : "starts if", "you " + Plain(change));
    }
    for (const auto& one : got.value("preemptions", Json::array())) {
      Line("history", Clock(TimeMs(one, "at")) + " " + one.value("what", "") + " by rule " +
                          one.value("rule", "") +
                          (one.contains("for_name") ? " for " + one.value("for_user", "") + "'s " +
                                                          one.value("for_name", "")
                                                    : ""));
    }
    const auto mark = Mark(got);
    if (!mark.empty()) Line("note", "the GPUs here are " + mark);
  });
}

}  // namespace muster::cli
