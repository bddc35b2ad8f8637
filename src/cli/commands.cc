#include "cli/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/cluster_verbs.h"
#include "cli/help_text.h"
#include "cli/job_verbs.h"
#include "cli/options.h"
#include "cli/policy_verbs.h"
#include "cli/run_verbs.h"
#include "cli/verbs.h"

namespace muster::cli {

struct Commands::Words {
  Verbs verbs;
  std::vector<std::string> jobs;
  std::string job, file, value, timeout, since;
  SubmitOptions submit;
  RunOptions run;
  ListOptions list;
  LogOptions logs;
  EventOptions events;
  WaitOptions wait;
  bool dry_run = false, topology = false;

  Words(CLI::App& app, int& status, const std::string& version) : verbs(app, status, version) {}
  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
};

Commands::~Commands() = default;

namespace {

constexpr int kMostLines = 1'000'000;  // of the API
constexpr std::int64_t kEvents = 200;

constexpr const char* kWaitStatuses =
    "Ends with 0 when all is as waited for, 100 when a job failed, 102 when one was cancelled,\n"
    "101 when the time is over and a job has not finished, 103 when that is because the\n"
    "scheduler has paused it. What became of a job that did not succeed is said on standard\n"
    "error; -o json prints the jobs.";

Error NoDuration(const std::string& flag, const std::string& text) {
  return {ErrorCode::kUsage, flag + ": \"" + text + "\" is no duration", "write it as 30s or 2h"};
}

}  // namespace

// tidy: allow function-size: one flat list of the verbs reads best in one piece
Commands::Commands(CLI::App& app, int& status, const std::string& version)
    : words_(new Words(app, status, version)) {
  Words& w = *words_;
  const auto may_try = [&w](CLI::App* command) {
    AddFlag(command, "--dry-run", w.dry_run, "check everything and change nothing");
    return w.verbs.Changes(command);
  };
  const auto verb = [&](CLI::App* parent, const char* name, const char* help, const char* example,
                        std::function<int(Session&)> call) {
    return w.verbs.Add(parent, name, help, example, std::move(call));
  };
  AddSendVerbs(app);
  auto* ps = verb(&app, "ps", "List jobs",
                  "muster ps\nmuster ps --filter 'gpus>=4,phase=running' --sort=-gpus\n"
                  "muster ps -a --sort=-created_at --limit 20\n"
                  "muster ps --queue vision --watch\n"
                  "muster ps --kind build --phase running",
                  [&w](Session& s) { return Ps(s, w.list); });
  AddFlag(ps, "-a,--all", w.list.all, "also those that have ended");
  AddOption(ps, "-q,--queue", w.list.queue, "of this queue and those below it").NameOf("queue");
  AddOption(ps, "-u,--user", w.list.user, "of this user");
  AddOption(ps, "--phase", w.list.phase, "of this phase: waiting, running, failed, ...");
  AddOption(ps, "--kind", w.list.kind, "of this kind: build or train");
  AddOption(ps, "--filter", w.list.filter,
            "conditions with commas between: gpus>=4,user!=ana,name~resnet,labels.team=a; gpus is "
            "status.gpus_asked");
  AddOption(
      ps, "--sort", w.list.sort,
      "id, name, user, queue, priority, gpus or created_at; -gpus: largest first; with -a id or "
      "created_at");
  AddOption(ps, "--limit", w.list.limit, "at most so many; default 500").Between(1, kMostListed);
  w.verbs.MayWatch(ps);

  const auto with_job = [&](CLI::App* command) {
    AddOption(command, "JOB", w.job, "name, id or @last").Required().NameOf("job");
    return command;
  };
  const auto with_jobs = [&](CLI::App* command) {
    AddOption(command, "JOB", w.jobs, "names, ids or @last; - reads them from standard input")
        .Required()
        .NameOf("job");
    return command;
  };
  with_job(w.verbs.MayWatch(verb(&app, "describe", "Everything about one job",
                                 "muster describe resnet\nmuster describe @last -o yaml",
                                 [&w](Session& s) { return DescribeJob(s, w.job); })));
  with_job(w.verbs.MayWatch(verb(&app, "why", "Why a job waits, and what would start it",
                                 "muster why @last", [&w](Session& s) { return Why(s, w.job); })));
  AddOutputVerbs(app);

  auto* wait =
      verb(&app, "wait", "Until jobs run or have ended",
           "muster wait resnet --for running\nmuster wait @last --for running --timeout 10m",
           [&w](Session& s) {
             if (!w.timeout.empty()) {
               const auto timeout_ms = ParseDurationMs(w.timeout);
               if (!timeout_ms) return Refuse(NoDuration("--timeout", w.timeout));
               w.wait.timeout_ms = std::max<std::int64_t>(1, *timeout_ms);
             }
             w.wait.jobs = w.jobs;
             return Wait(s, w.wait);
           });
  with_jobs(wait);
  AddOption(wait, "--for", w.wait.until, "running or done; default done")
      .OneOf({"running", "done"});
  AddOption(wait, "--timeout", w.timeout, "give up after, as 10m");
  Note(wait, kWaitStatuses);

  for (const auto& [name, help] : {std::pair{"cancel", "End jobs for good"},
                                   {"suspend", "Stop jobs until resumed"},
                                   {"resume", "Let suspended jobs go on"},
                                   {"requeue", "Stop jobs and start them again"},
                                   {"hold", "Keep waiting jobs from starting"},
                                   {"release", "Let held jobs start"},
                                   {"checkpoint", "Ask jobs for a checkpoint; they go on"}}) {
    const std::string what = name;
    const auto example = fmt::format("muster {0} resnet\nmuster {0} @last --dry-run", what);
    with_jobs(may_try(verb(&app, name, help, example.c_str(),
                           [&w, what](Session& s) { return Act(s, w.jobs, what, w.Query()); })));
  }
  auto* scale =
      verb(&app, "scale", "Change the number of workers",
           "muster scale resnet --workers 4..16\nmuster scale resnet --workers 8 --dry-run",
           [&w](Session& s) { return Scale(s, w.job, w.value, w.Query()); });
  with_job(may_try(scale));
  AddOption(scale, "--workers", w.value, "as 4 or 4..16").Required();
  auto* priority =
      verb(&app, "priority", "Change the priority of jobs", "muster priority resnet --to high",
           [&w](Session& s) { return Priority(s, w.jobs, w.value, w.Query()); });
  with_jobs(may_try(priority));
  AddOption(priority, "--to", w.value, "low, normal, high, build, critical or a number").Required();
  AddClusterVerbs(app);
  AddTopVerb(w.verbs);
  AddEnterVerbs(w.verbs);
  AddLookVerbs(w.verbs);
  AddPolicyVerbs(w.verbs);
  AddPeopleVerbs(w.verbs);
  AddAuditVerb(w.verbs);
  AddContextVerbs(w.verbs);
  AddHelpVerbs(w.verbs);
  AddLabVerbs(w.verbs);
}

void Commands::AddSendVerbs(CLI::App& app) {
  Words& w = *words_;
  auto* submit = w.verbs.Add(&app, "submit", "Send job files",
                             "muster submit train.yaml\nmuster submit train.yaml --dry-run\n"
                             "cat train.yaml | muster submit - -o name",
                             [&w](Session& s) { return Submit(s, w.submit); });
  AddOption(submit, "FILE", w.submit.files, "job files; - is standard input").Required();
  AddFlag(submit, "--hold", w.submit.held, "accept, but do not start before `muster release`");
  AddFlag(submit, "--dry-run", w.submit.dry_run, "check everything and change nothing");
  w.verbs.Changes(submit);

  auto* run = w.verbs.Add(&app, "run", "Run a command and watch it",
                          "muster run --gpus 1 -- python3 train.py\n"
                          "muster run --kind build -- bash\n"
                          "muster run --env EPOCHS=3 --label team=a --time 2h -- python3 train.py\n"
                          "muster run --detach --workers 2..4 --gpus 1 -- sleep 60",
                          [&w](Session& s) { return Run(s, w.run); });
  AddOption(run, "COMMAND", w.run.command, "what to run; put -- before it");
  AddOption(run, "--name", w.run.name, "name of the job; default: the program's");
  AddOption(run, "-q,--queue", w.run.queue, "queue; default: default");
  AddOption(run, "--kind", w.run.kind, "train or build");
  AddOption(run, "--gpus", w.run.gpus, "GPUs of each worker; 0.25 is a share");
  AddOption(run, "--cpus", w.run.cpus, "cores of each worker");
  AddOption(run, "--memory", w.run.memory, "memory of each worker, as 16Gi");
  AddOption(run, "--workers", w.run.workers, "number of workers, as 4 or 2..8");
  AddOption(run, "--priority", w.run.priority, "low, normal, high, critical or a number");
  AddOption(run, "--framework", w.run.framework, "torch, mpi, ...");
  AddOption(run, "--time", w.run.time, "time limit, as 2h");
  AddOption(run, "--retries", w.run.retries, "start it again so often when it fails");
  AddOption(run, "--idle", w.run.idle, "release build work that was not used so long, as 1h");
  AddOption(run, "--image", w.run.image, "container image");
  AddOption(run, "--template", w.run.from_template, "jupyter: a notebook; with --kind build");
  AddOption(run, "--workdir", w.run.workdir, "folder to run in; default: the one you are in");
  const auto each = [&](const char* flag, std::vector<std::string>& into, const char* help) {
    AddOption(run, flag, into, help).OneEach();
  };
  each("-e,--env", w.run.env, "K=V, or K for the value it has here; nothing else is passed on");
  each("--label", w.run.labels, "K=V; may be given several times");
  each("--gpu-types", w.run.gpu_types, "H100,A100: in order of preference; default: any");
  each("--topology", w.run.topology, "require=rack, prefer=nvlink");
  each("--after", w.run.after, "start behind this job: NAME, or NAME:ok, :any or :failed");
  AddOption(run, "--array", w.run.array, "one task for each number, as 0-99%8 (8 at once)");
  auto may = AddFlag(
      run, "--preemptible", [&w] { w.run.preemptible = true; }, "others may displace it");
  AddFlag(
      run, "--no-preemptible", [&w] { w.run.preemptible = false; },
      "others may not; default: by its priority")
      .Excludes(may);
  AddFlag(run, "-d,--detach", w.run.detach, "do not watch it");
  AddFlag(run, "-t,--terminal", w.run.terminal,
          "give it a terminal and join ours to it; build work at a terminal has one anyway");
  AddFlag(run, "--dry-run", w.run.dry_run, "check everything and run nothing");
  w.verbs.Changes(run);
  Note(run,
       "Shows what worker 0 writes, each stream on its own, until the job has ended, and ends as\n"
       "`muster wait` does. Ctrl-C leaves it running; joined to its terminal that is Ctrl-],\n"
       "because Ctrl-C goes to the program. With -o json the output goes to standard error and\n"
       "standard output gets the job as it is at its end.");
}

void Commands::AddOutputVerbs(CLI::App& app) {
  Words& w = *words_;
  auto* logs = w.verbs.Add(
      &app, "logs", "The output of a worker",
      "muster logs resnet\nmuster logs resnet -f --tail 20\nmuster logs resnet --rank 1 --err",
      [&w](Session& s) {
        if (!w.since.empty()) {
          const auto since_ms = ParseDurationMs(w.since);
          if (!since_ms) return Refuse(NoDuration("--since", w.since));
          w.logs.since_ms = std::max<std::int64_t>(1, WallMs() - *since_ms);
        }
        return Logs(s, w.logs);
      });
  w.verbs.Formats(logs, "table,wide,json,jsonl,yaml");
  AddOption(logs, "JOB", w.logs.job, "name, id or @last").Required().NameOf("job");
  AddFlag(logs, "-f,--follow", w.logs.follow, "until the job has ended");
  AddFlag(logs, "--err", w.logs.err, "standard error instead of standard output");
  AddOption(logs, "--rank", w.logs.worker, "of this worker; default 0").Between(0, kHighestRank);
  AddOption(logs, "--tail", w.logs.tail, "the last so many lines").Between(0, kMostLines);
  AddOption(logs, "--since", w.since, "leave out files last written to before, as 10m");
  Note(logs,
       "Shows all files that are kept, oldest first, and says on standard error when older ones\n"
       "have been dropped. Lines bear no time: --since leaves out whole files, so what it shows\n"
       "may begin earlier, but nothing written since is missing. -o wide puts rank and stream\n"
       "before each line, -o yaml is a list of lines, -o json prints one object a line:\n"
       R"({"rank": 0, "stream": "out", "line": "..."}.)");

  auto* events =
      w.verbs.IsList(w.verbs.Add(&app, "events", "What happened",
                                 "muster events\nmuster events resnet --limit 20\n"
                                 "muster events --filter kind=job-ended --sort=-revision",
                                 [&w](Session& s) {
                                   if (w.events.follow && w.verbs.common().watch) {
                                     return Refuse({ErrorCode::kUsage,
                                                    "events -f goes on by itself, without --watch",
                                                    "leave out one of them"});
                                   }
                                   w.events.selection = w.verbs.common().selection;
                                   return Events(s, w.events);
                                 }),
                     kEvents);
  AddOption(events, "JOB", w.events.job, "of one job only").NameOf("job");
  AddFlag(events, "-f,--follow", w.events.follow, "go on; with -o json one object a line");
  AddFlag(events, "--cycles", w.events.cycles, "also each scheduling cycle");
  Note(events,
       "The newest comes last. --filter takes keys of -o json: kind=job-ended, facts.job=7,\n"
       "facts.node=lab-3; --sort revision or -revision. -o name prints revisions.");
}

void Commands::AddClusterVerbs(CLI::App& app) {
  Words& w = *words_;
  const auto may_try = [&w](CLI::App* command) {
    AddFlag(command, "--dry-run", w.dry_run, "check everything and change nothing");
    return w.verbs.Changes(command);
  };
  w.verbs.IsList(w.verbs.Add(&app, "nodes", "List nodes",
                             "muster nodes\nmuster nodes --filter phase=ready --sort=-gpus_total",
                             Nodes));
  CLI::App* node = w.verbs.Group("node", "Take nodes out and back");
  for (const auto& [name, help] : {std::pair{"cordon", "Start nothing more there"},
                                   {"drain", "Start nothing more there and move what runs"},
                                   {"uncordon", "Use it again"}}) {
    const std::string what = name;
    const auto example = "muster node " + what + " lab-3";
    auto* command = may_try(w.verbs.Add(node, name, help, example.c_str(), [&w, what](Session& s) {
      return MarkNode(s, w.value, what, w.Query());
    }));
    AddOption(command, "NODE", w.value, "its name").Required().NameOf("node");
  }
  auto* gpus = w.verbs.IsList(
      w.verbs.Add(&app, "gpus", "Every GPU and who has it",
                  "muster gpus\nmuster gpus --topology\nmuster gpus --filter type=H100 -o jsonl",
                  [&w](Session& s) {
                    // A part of a node's GPUs would be shown as all of them.
                    if (w.topology && w.verbs.common().selection.limit > 0) {
                      return Refuse({ErrorCode::kUsage, "--limit: the tree of --topology is whole",
                                     "leave it out, or choose with --filter"});
                    }
                    return Gpus(s, w.topology);
                  }));
  AddFlag(gpus, "--topology", w.topology, "by node, NUMA node, PCIe switch and NVLink island");
  CLI::App* queue = w.verbs.Group("queue", "Queues and their quotas");
  w.verbs.IsList(
      w.verbs.Add(queue, "list", "List queues", "muster queue list --sort=-gpus_held", Queues));
  auto* apply = may_try(w.verbs.Add(queue, "apply", "Add or change queues from a file",
                                    "muster queue apply queues.yaml --dry-run", [&w](Session& s) {
                                      return ApplyQueues(s, w.file, w.Query());
                                    }));
  AddOption(apply, "FILE", w.file, "- is standard input").Required();
  AddQueueVerbs(w.verbs, queue);
  AddReservationVerbs(w.verbs);
  AddRunVerbs(w.verbs);
  CLI::App* snapshot = w.verbs.Group("snapshot", "Everything the engine saw, in one file");
  auto* save =
      w.verbs.Add(snapshot, "save", "Save it", "muster snapshot save today.snap",
                  [&w](Session& s) { return SaveSnapshot(s, w.file, w.verbs.common().yes); });
  AddOption(save, "FILE", w.file, "where to").Required();
  w.verbs.Changes(save, "also over a file that is there");
  auto* past = w.verbs.Add(
      snapshot, "past", "Save what happened lately, to replay it under other policies",
      "muster snapshot past last-week.past\nmuster snapshot past yesterday.past --since 24h",
      [&w](Session& s) { return SavePast(s, w.file, w.since, w.verbs.common().yes); });
  AddOption(past, "FILE", w.file, "where to").Required();
  AddOption(past, "--since", w.since, "jobs of that time, and those that are here; default 7d");
  w.verbs.Changes(past, "also over a file that is there");
  auto* replay = w.verbs.AddLocal(snapshot, "replay", "Decide it again offline and compare",
                                  "muster snapshot replay today.snap",
                                  [&w] { return ReplaySnapshot(w.file, w.verbs.common().output); });
  w.verbs.Formats(replay, "table,wide,json,jsonl,yaml");
  AddOption(replay, "FILE", w.file, "made by `muster snapshot save`").Required();
}

Completion Commands::Complete(const std::vector<std::string>& words) const {
  return cli::Complete(words_->verbs, words);
}

}  // namespace muster::cli
