#include "cli/policy_diff.h"

#include <fmt/format.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"
#include "cli/options.h"
#include "cli/policy_in.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "model/document_writer.h"
#include "model/spec_codec.h"
#include "sim/jobs/read_jobs.h"
#include "sim/jobs/run_jobs.h"
#include "sim/past/diff.h"
#include "sim/past/past_file.h"
#include "sim/report/folder.h"
#include "sim/report/report.h"

namespace muster::cli {
namespace {

namespace report = sim::report;

using Json = nlohmann::json;
using report::SpanText;

constexpr long kAskEveryMs = 250;
constexpr std::size_t kGroupsShown = 10;
constexpr std::size_t kJobsShown = 5;
constexpr std::int64_t kGpusPerNode = 8;
constexpr std::size_t kMostPastBytes = std::size_t{4} << 30;

constexpr const char* kNote =
    "Replays the journal of the last days under the policy that runs (old) and under FILE\n"
    "(new), with the engine that runs in production, and shows who gains, who waits longer,\n"
    "utilisation and lost work; beside them what really happened. Nothing is changed. With\n"
    "--trace the jobs of a public trace are played instead, with --past what was saved by\n"
    "`muster snapshot past`, both here and without a daemon. What a replay assumes is in\n"
    "docs/lab.md.";

struct Words {
  std::string file, since, trace, past, queues, old_file, to;
  std::int64_t node_count = 0, gpus_per_node = 0;
};

Result<std::vector<model::Queue>> QueuesIn(const std::string& path) {
  if (path.empty()) return std::vector<model::Queue>{};
  auto text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  auto decoded = model::DecodeSpec(*text);
  if (decoded.problems.HasErrors()) {
    auto error = model::ToError(decoded.problems);
    error.message = path + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  return std::move(decoded.spec.queues);
}

struct Here {
  sim::Past past;
  engine::Policy old = {};
};

Result<Here> TraceHere(const Words& words) {
  auto queues = QueuesIn(words.queues);
  if (!queues) return tl::unexpected(queues.error());
  const auto trace = sim::ReadJobs(words.trace);
  if (!trace) return tl::unexpected(trace.error());
  if (trace->format == "past") {
    return Fail(ErrorCode::kUsage, words.trace + " is a past and no trace",
                "replay it with --past, which knows more of its jobs");
  }
  const auto each = words.gpus_per_node > 0 ? words.gpus_per_node : kGpusPerNode;
  const auto nodes = words.node_count > 0 ? words.node_count : sim::NodesFor(trace->jobs, each);
  auto past = sim::PastOf(*trace, nodes, each, std::move(*queues));
  if (!past) return tl::unexpected(past.error());
  return Here{std::move(*past)};
}

Result<Here> PastHere(const std::string& path) {
  const auto bytes = ReadFile(path, kMostPastBytes);
  if (!bytes) return tl::unexpected(bytes.error());
  auto file = sim::DecodePast(*bytes);
  if (!file) {
    auto error = file.error();
    error.message = path + ": " + error.message;
    return tl::unexpected(std::move(error));
  }
  return Here{std::move(file->past), engine::RecordedPolicy(file->policy)};
}

// A trace or a past that was saved, without a daemon.
Result<Json> DiffHere(const Words& words, const ReadPolicy& wanted) {
  auto here = words.past.empty() ? TraceHere(words) : PastHere(words.past);
  if (!here) return tl::unexpected(here.error());
  if (!words.old_file.empty()) {
    const auto read = PolicyIn(words.old_file);
    if (!read) return tl::unexpected(read.error());
    here->old = read->policy;
  }
  const auto& past = here->past;
  ShareProgress progress(2);
  const auto play = [&](const engine::Policy& policy, const char* name) {
    auto played =
        sim::PlayPast(past, policy, progress.Next(fmt::format("under the {} policy", name)));
    progress.Erase();
    return played;
  };
  const auto before = play(here->old, "old");
  if (!before) return tl::unexpected(before.error());
  const auto after = play(wanted.policy, "new");
  if (!after) return tl::unexpected(after.error());
  return Json::parse(model::WriteJson(sim::DiffToNode(sim::Compare(past, *before, *after))));
}

// Waits, unless somebody presses Ctrl-C, which then ends us at a time of our choice.
class Patience {
 public:
  Patience() {
    sigemptyset(&interrupt_);
    sigaddset(&interrupt_, SIGINT);
    ::sigprocmask(SIG_BLOCK, &interrupt_, &before_);
  }
  ~Patience() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

  // False: somebody did.
  bool Wait(long ms) const {
    const timespec time{ms / 1000, ms % 1000 * 1'000'000};
    return ::sigtimedwait(&interrupt_, nullptr, &time) != SIGINT;
  }
  [[noreturn]] void GiveUp() const {
    std::signal(SIGINT, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    (void)std::raise(SIGINT);
    std::_Exit(130);  // where it was ignored
  }

 private:
  sigset_t interrupt_{}, before_{};
};

// What really happened, by the daemon.
Result<Json> DiffJournal(Session& session, const Words& words, const ReadPolicy& wanted) {
  Json body = Json::parse(WritePolicyFile(wanted.file, model::TextFormat::kJson));
  body.erase("about");
  body["kind"] = "policy-diff";
  body["since"] = words.since.empty() ? "7d" : words.since;
  const Patience patience;  // from here on: what was begun is ended
  const auto begun = session.client().Post("simulations", {}, body.dump());
  if (!begun) return tl::unexpected(begun.error());
  const auto path = "simulations/" + Json::parse(*begun).at("id").get<std::string>();
  Progress line;
  ShareProgress progress;
  const auto replaying = progress.Next("replaying");
  for (;;) {
    const auto answer = session.client().Get(path);
    if (!answer) return tl::unexpected(answer.error());
    auto got = Json::parse(*answer);
    const auto& status = got.at("status");
    const auto phase = status.at("phase").get<std::string>();
    if (phase == "done") {
      (void)session.client().Delete(path);  // it is here now
      return std::move(got.at("result"));
    }
    if (phase != "waiting" && phase != "running") {
      return Fail(ErrorCode::kUnavailable, "the replay: " + status.value("why", phase),
                  status.value("hint", ""));
    }
    if (phase == "waiting") {
      line.Say("the replay waits for another one");
    } else {
      (void)replaying(status.at("progress_pct").get<double>() / 100);
    }
    if (patience.Wait(kAskEveryMs)) continue;
    (void)session.client().Delete(path);  // nobody waits for it any more
    progress.Erase();
    patience.GiveUp();
  }
}

std::string Change(double before, double after) {
  const double change = after - before;
  if (std::abs(change) < 0.5) return "same";
  return (change < 0 ? "-" : "+") + SpanText(std::abs(change));
}

void PrintTotals(const Json& diff) {
  const auto& totals = diff.at("totals");
  const bool recorded = totals.contains("recorded");
  struct Line {
    const char* name;
    const char* key;
    bool time;
  };
  Rows rows;
  for (const auto& [name, key, time] :
       {Line{"mean wait", "wait_s", true}, Line{"90 % wait at most", "p90_wait_s", true},
        Line{"mean completion", "completion_s", true},
        Line{"GPUs in use", "utilisation_pct", false}, Line{"pauses", "pauses", false},
        Line{"lost GPU-hours", "lost_gpu_hours", false}, Line{"moves", "moves", false},
        Line{"resizes", "resizes", false}, Line{"last end", "last_end_s", true}}) {
    std::vector<std::string> row = {name};
    const auto cell = [&](const Json& side) -> std::string {
      if (!side.contains(key)) return "-";
      const auto& value = side.at(key);
      if (time) return SpanText(value);
      if (value.is_number_integer()) return Plain(value);
      return fmt::format("{:.1f}{}", value.get<double>(),
                         std::string_view(key) == "utilisation_pct" ? " %" : "");
    };
    if (recorded) row.push_back(cell(totals.at("recorded")));
    row.push_back(cell(totals.at("old")));
    row.push_back(cell(totals.at("new")));
    row.push_back(time ? Change(totals.at("old").at(key), totals.at("new").at(key)) : "");
    rows.push_back(std::move(row));
  }
  std::vector<std::string> head = {""};
  if (recorded) head.emplace_back("RECORDED");
  head.insert(head.end(), {"OLD", "NEW", "CHANGE"});
  std::cout << LayOut(head, rows, SheetNow());
}

void PrintGroups(const Json& groups, const char* what, bool wide) {
  Rows rows;
  for (const auto& group : groups) {
    if (!wide && rows.size() == kGroupsShown) break;
    const auto& before = group.at("old");
    const auto& after = group.at("new");
    std::vector<std::string> row = {group.value("name", ""), Plain(group.at("jobs"))};
    for (const char* key : {"wait_s", "p90_wait_s", "completion_s"}) {
      row.push_back(SpanText(before.at(key)));
      row.push_back(SpanText(after.at(key)));
    }
    row.push_back(Change(before.at("completion_s"), after.at("completion_s")));
    rows.push_back(std::move(row));
  }
  std::cout << '\n'
            << LayOut({what, "JOBS", "WAIT", "NEW", "P90", "NEW", "COMPLETION", "NEW", "CHANGE"},
                      rows, SheetNow());
  if (rows.size() < groups.size()) {
    std::cout << "and " << groups.size() - rows.size() << " more (-o wide)\n";
  }
}

void PrintJobs(const Json& jobs, const char* what, bool wide) {
  if (jobs.empty()) return;
  Rows rows;
  for (const auto& job : jobs) {
    if (!wide && rows.size() == kJobsShown) break;
    rows.push_back({job.value("id", ""), job.value("name", ""), job.value("user", ""),
                    job.value("queue", ""), SpanText(job.at("old_completion_s")),
                    SpanText(job.at("new_completion_s")),
                    Change(job.at("old_completion_s"), job.at("new_completion_s"))});
  }
  std::cout << '\n'
            << what << '\n'
            << LayOut({"JOB", "NAME", "USER", "QUEUE", "COMPLETION", "NEW", "CHANGE"}, rows,
                      SheetNow());
}

void Print(const Json& diff, bool wide) {
  std::cout << fmt::format("{} on {} over {}\n", Count(diff.at("jobs").get<long long>(), "job"),
                           Count(diff.at("gpus").get<long long>(), "GPU"),
                           SpanText(diff.at("span_s")));
  for (const auto& [key, text] :
       {std::pair("not_compared", "could not run to the end under one of the two"),
        {"left_out", "never ran and were left out"},
        {"still_there", "have not ended: counted with what they did so far"},
        {"carried_over", "came before that time: they take up room and are not compared"}}) {
    const auto count = diff.at(key).get<long long>();
    if (count > 0) std::cout << count << ' ' << text << '\n';
  }
  std::cout << '\n';
  PrintTotals(diff);
  PrintGroups(diff.at("queues"), "QUEUE", wide);
  PrintGroups(diff.at("users"), "USER", wide);
  if (diff.at("gain").empty() && diff.at("lose").empty()) {
    std::cout << "\nNo job ends sooner or later.\n";
  }
  PrintJobs(diff.at("gain"), "They end sooner:", wide);
  PrintJobs(diff.at("lose"), "They end later:", wide);
}

Result<void> CheckWords(const Words& words) {
  const bool journal = words.trace.empty() && words.past.empty();
  const char* flag = !words.queues.empty()     ? "--queues"
                     : words.node_count > 0    ? "--node-count"
                     : words.gpus_per_node > 0 ? "--gpus-per-node"
                                               : nullptr;
  const bool old = !words.old_file.empty() && journal;
  if (old || (words.trace.empty() && flag != nullptr)) {
    return Fail(ErrorCode::kUsage,
                old ? "--old is for --trace and --past" : fmt::format("{} is for --trace", flag),
                "what really happened has its own nodes, queues and policy");
  }
  if (!journal && !words.since.empty()) {
    return Fail(ErrorCode::kUsage, "--since is for the journal, and not for --trace or --past",
                "leave one of them out");
  }
  if (!words.since.empty() && !ParseDurationMs(words.since)) {
    return Fail(ErrorCode::kUsage, "--since: \"" + words.since + "\" is no duration",
                "write it as 24h or 7d");
  }
  return {};
}

int RunDiff(Session& session, const Words& words, const Common& common) {
  if (const auto checked = CheckWords(words); !checked) return Refuse(checked.error());
  if (!words.to.empty()) {
    if (const auto checked = report::CheckFolder(words.to, common.yes); !checked) {
      return Refuse(checked.error());
    }
  }
  const auto wanted = PolicyIn(words.file);
  if (!wanted) return Refuse(wanted.error());
  const bool journal = words.trace.empty() && words.past.empty();
  const auto diff = journal ? DiffJournal(session, words, *wanted) : DiffHere(words, *wanted);
  if (!diff) return Refuse(diff.error());
  if (!words.to.empty()) {
    report::Origin origin{common.version, {}, 0};
    origin.files = {{"new policy", wanted->file.name.empty() ? words.file : wanted->file.name},
                    {"jobs of", journal ? "the journal" : words.past + words.trace}};
    const auto files = report::DiffReport(origin, *diff);
    if (const auto written = report::WriteReport(words.to, files, common.yes); !written) {
      return Refuse(written.error());
    }
    std::cerr << words.to << (words.to.ends_with('/') ? "" : "/") << report::kPageName << '\n';
  }
  if (!ForPeople(session.output())) return ShowDocument(session.output(), diff->dump());
  Print(*diff, session.wide());
  return 0;
}

}  // namespace

void AddPolicyDiff(Verbs& verbs, CLI::App* policy) {
  auto w = std::make_shared<Words>();
  auto* diff =
      verbs.Add(policy, "diff", "Show what another policy would have changed",
                "muster policy diff examples/policies/gentle.yaml --since 24h\n"
                "muster policy diff examples/policies/gentle.yaml --to replayed\n"
                "muster policy diff examples/policies/gentle.yaml --trace examples/lab/jobs.csv\n"
                "muster policy diff examples/policies/gentle.yaml --past last-week.past",
                [w, &verbs](Session& session) { return RunDiff(session, *w, verbs.common()); });
  AddOption(diff, "FILE", w->file, "a policy file; - is standard input").Required();
  AddOption(diff, "--since", w->since, "jobs of that time, and those that are here; default 7d");
  auto trace = AddOption(diff, "--trace", w->trace, "play this trace instead, without a daemon");
  AddOption(diff, "--past", w->past, "play what `muster snapshot past` saved, without a daemon")
      .Excludes(trace);
  AddOption(diff, "--old", w->old_file,
            "the old policy; default: with --trace the defaults, with --past its own");
  AddOption(diff, "--queues", w->queues, "with --trace: a queue file; default: as the trace");
  AddOption(diff, "--node-count", w->node_count, "with --trace; default: for 95 % of the demand")
      .Between(1, 100'000);
  AddOption(diff, "--gpus-per-node", w->gpus_per_node, "with --trace; default 8").Between(1, 64);
  AddOption(diff, "--to", w->to, "a folder for a page with plots: index.html, and SVG files");
  verbs.Changes(diff, "also over a report that is in that folder");
  verbs.Formats(diff, "table,wide,json,jsonl,yaml");
  Note(diff, kNote);
}

}  // namespace muster::cli
