#include "cli/commands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/cluster_verbs.h"
#include "cli/job_verbs.h"
#include "cli/verbs.h"

namespace muster::cli {

struct DaemonCommands::Words {
  Verbs verbs;
  std::vector<std::string> jobs;
  std::string job, file, value, timeout, since;
  SubmitOptions submit;
  RunOptions run;
  ListOptions list;
  LogOptions logs;
  EventOptions events;
  WaitOptions wait;
  bool dry_run = false, watch = false;

  Words(CLI::App& app, int& status, const std::string& version) : verbs(app, status, version) {}
  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
};

DaemonCommands::~DaemonCommands() = default;

namespace {

constexpr int kLargest = INT32_MAX;

// An empty word or one with a slash would ask the daemon for something else than a job.
const CLI::Validator kJobWord(
    [](std::string& word) {
      return word.empty() || word.find('/') != std::string::npos
                 ? "\"" + word + "\" is no job: write its name, its id or @last"
                 : std::string();
    },
    "");

constexpr const char* kWaitStatuses =
    "Ends with 0 when all is as waited for, 100 when a job failed, 102 when one was cancelled,\n"
    "101 when the time is over and a job has not finished, 103 when that is because the\n"
    "scheduler has paused it. What became of a job that did not succeed is said on standard\n"
    "error; -o json prints the jobs.";

Error NoDuration(const std::string& flag, const std::string& text) {
  return {ErrorCode::kUsage, flag + ": \"" + text + "\" is no duration", "write it as 30s or 2h"};
}

void AddExamples(CLI::App& app) {
  for (const auto& [verb, example] : {std::pair{"submit", "muster submit train.yaml --dry-run"},
                                      {"describe", "muster describe resnet"},
                                      {"why", "muster why @last"},
                                      {"events", "muster events resnet -f"},
                                      {"scale", "muster scale resnet --workers 4..16"},
                                      {"priority", "muster priority resnet --to high"},
                                      {"nodes", "muster nodes --watch"},
                                      {"gpus", "muster gpus -o jsonl"}}) {
    app.get_subcommand(verb)->footer(std::string("Example: ") + example);
  }
}

}  // namespace

// tidy: allow function-size: one flat list of the verbs reads best in one piece
DaemonCommands::DaemonCommands(CLI::App& app, int& status, const std::string& version)
    : words_(new Words(app, status, version)) {
  Words& w = *words_;
  const auto verb = [&](CLI::App* parent, const char* name, const char* help,
                        std::function<int(Session&)> call) {
    return w.verbs.Add(parent, name, help, "", std::move(call));
  };
  const auto may_try = [&w](CLI::App* command) {
    command->add_flag("--dry-run", w.dry_run, "check everything and change nothing");
    return command;
  };

  auto* submit =
      verb(&app, "submit", "Send job files", [&w](Session& s) { return Submit(s, w.submit); });
  submit->add_option("FILE", w.submit.files, "job files; - is standard input")->required();
  submit->add_flag("--hold", w.submit.held, "accept, but do not start before `muster release`");
  submit->add_flag("--dry-run", w.submit.dry_run, "check everything and change nothing");

  auto* run =
      verb(&app, "run", "Run a command and watch it", [&w](Session& s) { return Run(s, w.run); });
  run->add_option("COMMAND", w.run.command, "what to run; put -- before it")->required();
  run->add_option("--name", w.run.name, "name of the job; default: the program's");
  run->add_option("-q,--queue", w.run.queue, "queue; default: default");
  run->add_option("--kind", w.run.kind, "train or build");
  run->add_option("--gpus", w.run.gpus, "GPUs of each worker; 0.25 is a share");
  run->add_option("--cpus", w.run.cpus, "cores of each worker");
  run->add_option("--memory", w.run.memory, "memory of each worker, as 16Gi");
  run->add_option("--workers", w.run.workers, "number of workers, as 4 or 2..8");
  run->add_option("--priority", w.run.priority, "low, normal, high, critical or a number");
  run->add_option("--framework", w.run.framework, "torch, mpi, ...");
  run->add_option("--time", w.run.time, "time limit, as 2h");
  run->add_option("--image", w.run.image, "container image");
  run->add_flag("-d,--detach", w.run.detach, "do not watch it");
  run->add_flag("-t,--terminal", w.run.terminal,
                "give it a terminal and join ours to it; build work at a terminal has one anyway");
  run->footer(
      "Shows what worker 0 writes, each stream on its own, until the job has ended, and ends as\n"
      "`muster wait` does. With -o json the output goes to standard error and standard output\n"
      "gets the job as it is at its end.");

  auto* ps = verb(&app, "ps", "List jobs", [&w](Session& s) { return Ps(s, w.list); });
  ps->add_flag("-a,--all", w.list.all, "also those that have ended");
  ps->add_option("-q,--queue", w.list.queue, "of this queue and those below it");
  ps->add_option("-u,--user", w.list.user, "of this user");
  ps->add_option("--phase", w.list.phase, "of this phase: waiting, running, failed, ...");
  ps->add_option("--filter", w.list.filter,
                 "conditions with commas between: gpus>=4,user!=ana,name~resnet,labels.team=a");
  ps->add_option("--sort", w.list.sort,
                 "id, name, user, queue, priority, gpus or created_at; -gpus: largest first");
  ps->add_option("--limit", w.list.limit, "at most so many")->check(CLI::Range(1, 10'000'000));
  ps->footer("Example: muster ps -a --filter 'gpus>=4,phase=running' --sort=-gpus");
  ps->add_flag("-w,--watch", w.list.watch, "again every second");

  const auto with_job = [&](CLI::App* command) {
    command->add_option("JOB", w.job, "name, id or @last")->required()->check(kJobWord);
  };
  const auto with_jobs = [&](CLI::App* command) {
    command->add_option("JOB", w.jobs, "names, ids or @last")->required()->check(kJobWord);
  };
  with_job(verb(&app, "describe", "Everything about one job",
                [&w](Session& s) { return DescribeJob(s, w.job); }));
  with_job(verb(&app, "why", "Why a job waits, and what would start it",
                [&w](Session& s) { return Why(s, w.job); }));

  auto* logs = verb(&app, "logs", "The output of a worker", [&w](Session& s) {
    if (!w.since.empty()) {
      const auto since_ms = ParseDurationMs(w.since);
      if (!since_ms) return Refuse(NoDuration("--since", w.since));
      w.logs.since_ms = std::max<std::int64_t>(1, WallMs() - *since_ms);
    }
    return Logs(s, w.logs);
  });
  logs->add_option("JOB", w.logs.job, "name, id or @last")->required()->check(kJobWord);
  logs->add_flag("-f,--follow", w.logs.follow, "until the job has ended");
  logs->add_flag("--err", w.logs.err, "standard error instead of standard output");
  logs->add_option("--rank", w.logs.worker, "of this worker; default 0")
      ->check(CLI::Range(0, kLargest));
  logs->add_option("--tail", w.logs.tail, "the last so many lines")->check(CLI::Range(0, kLargest));
  logs->add_option("--since", w.since, "leave out files last written to before, as 10m");
  logs->footer(
      "Shows all files that are kept, oldest first, and says on standard error when older ones\n"
      "have been dropped. Lines bear no time: --since leaves out whole files, so what it shows\n"
      "may begin earlier, but nothing written since is missing. -o json prints one object a line:\n"
      R"({"rank": 0, "stream": "out", "line": "..."}.)");

  auto* events =
      verb(&app, "events", "What happened", [&w](Session& s) { return Events(s, w.events); });
  events->add_option("JOB", w.events.job, "of one job only")->check(kJobWord);
  events->add_flag("-f,--follow", w.events.follow, "go on; with -o json one object a line");
  events->add_flag("--cycles", w.events.cycles, "also each scheduling cycle, as -o wide does");
  events->add_option("--limit", w.events.limit, "the last so many")->check(CLI::Range(1, 10'000));

  auto* wait = verb(&app, "wait", "Until jobs run or have ended", [&w](Session& s) {
    if (!w.timeout.empty()) {
      const auto timeout_ms = ParseDurationMs(w.timeout);
      if (!timeout_ms) return Refuse(NoDuration("--timeout", w.timeout));
      w.wait.timeout_ms = std::max<std::int64_t>(1, *timeout_ms);
    }
    w.wait.jobs = w.jobs;
    return Wait(s, w.wait);
  });
  with_jobs(wait);
  wait->add_option("--for", w.wait.until, "running or done")
      ->check(CLI::IsMember({"running", "done"}));
  wait->add_option("--timeout", w.timeout, "give up after, as 10m");
  wait->footer(kWaitStatuses);

  for (const auto& [name, help] : {std::pair{"cancel", "End jobs for good"},
                                   {"suspend", "Stop jobs until resumed"},
                                   {"resume", "Let suspended jobs go on"},
                                   {"hold", "Keep waiting jobs from starting"},
                                   {"release", "Let held jobs start"},
                                   {"requeue", "Stop jobs and start them again"},
                                   {"checkpoint", "Ask jobs for a checkpoint; they go on"}}) {
    const std::string what = name;
    auto* command =
        verb(&app, name, help, [&w, what](Session& s) { return Act(s, w.jobs, what, w.Query()); });
    with_jobs(may_try(command));
    command->footer("Example: muster " + what + " resnet @last");
  }
  auto* scale = verb(&app, "scale", "Change the number of workers",
                     [&w](Session& s) { return Scale(s, w.job, w.value, w.Query()); });
  with_job(may_try(scale));
  scale->add_option("--workers", w.value, "as 4 or 4..16")->required();
  auto* priority = verb(&app, "priority", "Change the priority of jobs",
                        [&w](Session& s) { return Priority(s, w.jobs, w.value, w.Query()); });
  with_jobs(may_try(priority));
  priority->add_option("--to", w.value, "low, normal, high, critical or a number")->required();

  const auto may_watch = [&w](CLI::App* command) {
    command->add_flag("-w,--watch", w.watch, "again every second");
  };
  may_watch(verb(&app, "nodes", "List nodes",
                 [&w](Session& s) { return s.Repeat(w.watch, [&s] { return Nodes(s); }); }));
  may_watch(verb(&app, "gpus", "Every GPU and who has it",
                 [&w](Session& s) { return s.Repeat(w.watch, [&s] { return Gpus(s); }); }));
  CLI::App* node = app.add_subcommand("node", "Take nodes out and back");
  node->require_subcommand(1);
  for (const auto& [name, help] : {std::pair{"cordon", "Start nothing more there"},
                                   {"drain", "Start nothing more there and move what runs"},
                                   {"uncordon", "Use it again"}}) {
    const std::string what = name;
    may_try(verb(node, name, help,
                 [&w, what](Session& s) { return MarkNode(s, w.value, what, w.Query()); }))
        ->add_option("NODE", w.value, "its name")
        ->required();
  }
  CLI::App* queue = app.add_subcommand("queue", "Queues and their quotas");
  queue->require_subcommand(1);
  may_watch(verb(queue, "list", "List queues",
                 [&w](Session& s) { return s.Repeat(w.watch, [&s] { return Queues(s); }); }));
  may_try(verb(queue, "apply", "Add or change queues from a file",
               [&w](Session& s) { return ApplyQueues(s, w.file, w.Query()); }))
      ->add_option("FILE", w.file, "- is standard input")
      ->required();
  CLI::App* snapshot = app.add_subcommand("snapshot", "Everything the engine saw, in one file");
  snapshot->require_subcommand(1);
  verb(snapshot, "save", "Save it", [&w](Session& s) { return SaveSnapshot(s, w.file); })
      ->add_option("FILE", w.file, "where to")
      ->required();
  verb(snapshot, "replay", "Decide it again offline and compare",
       [&w](Session&) { return ReplaySnapshot(w.file, w.verbs.common().output); })
      ->add_option("FILE", w.file, "made by `muster snapshot save`")
      ->required();
  AddExamples(app);
  AddQueueVerbs(w.verbs, queue);
  AddEnterVerbs(w.verbs);
  AddTopVerb(w.verbs);
  AddLookVerbs(w.verbs);
  AddPeopleVerbs(w.verbs);
  AddContextVerbs(w.verbs);
  AddHelpVerbs(w.verbs);
}

std::vector<std::string> DaemonCommands::Complete(const std::vector<std::string>& words) const {
  return cli::Complete(words_->verbs, words);
}

}  // namespace muster::cli
