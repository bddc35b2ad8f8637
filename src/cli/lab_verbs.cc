// Verbs that need no daemon: validate, and the lab with sim, bench and demo.
#include <iostream>
#include <memory>
#include <sstream>

#include "cli/bench.h"
#include "cli/demo.h"
#include "cli/options.h"
#include "cli/scenarios.h"
#include "cli/sim_pooling.h"
#include "cli/sim_report.h"
#include "cli/sim_run.h"
#include "cli/validate.h"
#include "cli/verbs.h"
#include "sim/jobs/generate.h"

namespace muster::cli {
namespace {

constexpr const char* kReportNote =
    "index.html is one page without scripts that needs no network: tables, and plots of\n"
    "completion times, utilisation over time and who held GPUs when (jobs, pollux), or of\n"
    "allocation and fragmentation (openb). The same inputs give the same bytes. A folder\n"
    "that is neither empty nor a report is never written to.";

constexpr const char* kPoolingNote =
    "fixed: each queue has its part of the GPUs and never more. guaranteed: the same parts\n"
    "as quotas; what is idle is lent and taken back. elastic: as that, and jobs of several\n"
    "GPUs run on half to twice of what they ask for. fixed-same-wait: the least GPUs with\n"
    "which fixed parts have the mean wait of guaranteed. IDLE is what was free while a job\n"
    "waited. docs/lab.md has the rules.";

void AddSim(Verbs& verbs, CLI::App* sim) {
  auto w = std::make_shared<SimWords>();
  const auto output = [&verbs] { return verbs.common().output; };
  auto* run =
      verbs.AddLocal(sim, "run", "Play a public trace under one policy",
                     "muster sim run --workload examples/lab/jobs.csv --policy muster\n"
                     "muster sim run --profiles examples/lab/pollux --policy tiresias\n"
                     "muster sim run --nodes nodes.csv --pods pods.csv --policy fgd --seed 42",
                     [w, output] { return RunSim(*w, output()); });
  AddOption(run, "--policy", w->policy, "the policy; a wrong one is told those there are")
      .Required();
  auto* compare = verbs.AddLocal(
      sim, "compare", "Play a public trace under several policies",
      "muster sim compare --profiles examples/lab/pollux --policies tiresias,pollux\n"
      "muster sim compare --workload examples/lab/jobs.csv --policies fifo,muster",
      [w, output] { return CompareSim(*w, output()); });
  auto* report = verbs.AddLocal(
      sim, "report", "Play a public trace under several policies, and draw it",
      "muster sim report --profiles examples/lab/pollux --policies pollux --to report\n"
      "muster sim report --nodes nodes.csv --pods pods.csv --policies fgd --to placed",
      [w, &verbs] { return ReportSim(*w, verbs.common()); });
  AddOption(report, "--to", w->to, "the folder to write: index.html, and the plots as SVG files")
      .Required();
  verbs.Changes(report, "also over a report that is there");
  Note(report, kReportNote);
  for (auto* command : {compare, report}) {
    AddOption(command, "--policies", w->policies, "the policies, with commas between them")
        .Required();
    AddOption(command, "--seeds", w->seeds, "so many runs of each, and their mean; default 1")
        .Between(1, 10'000);
  }
  for (auto* command : {run, compare, report}) {
    AddOption(command, "--set", w->set,
              "jobs, pollux (elastic training) or openb (pods); default: as the files say")
        .OneOf({"jobs", "pollux", "openb"});
    AddOption(command, "--seed", w->seed, "where randomness begins; default 0")
        .Between(0, INT64_MAX);
    AddOption(command, "--profiles", w->profiles,
              "pollux: a folder with profiles and interpolation");
    AddOption(command, "--workload", w->workload,
              "jobs: a trace, or what `muster snapshot past` saved; pollux: default workload.csv "
              "in that folder");
    AddOption(command, "--node-count", w->node_count,
              "jobs: so many nodes, default: for 95 % of the demand; pollux: default 16")
        .Between(1, 100'000);
    AddOption(command, "--gpus-per-node", w->gpus_per_node,
              "GPUs of a node; jobs: default 8; pollux: default 4")
        .Between(1, 64);
    AddFlag(command, "--estimates", w->estimates,
            "jobs: score forecasts of the start, in the document");
    AddOption(command, "--policy-file", w->policy_file,
              "how `muster` decides: a policy file, as for `muster policy apply`");
    AddOption(command, "--nodes", w->nodes, "openb: a file of nodes");
    AddOption(command, "--pods", w->pods, "openb: a file of pods");
    verbs.Formats(command, "table,wide,json,jsonl,yaml");
  }
}

void AddGenerate(Verbs& verbs, CLI::App* sim) {
  auto w = std::make_shared<GenerateWords>();
  auto* generate =
      verbs.AddLocal(sim, "generate", "Make a trace of jobs from published distributions",
                     "muster sim generate --jobs 1000 --seed 7 > jobs.csv\n"
                     "muster sim generate --jobs 1000 --like philly --rate 60 > jobs.csv",
                     [w, &verbs] { return GenerateSim(*w, verbs.common().output); });
  AddOption(generate, "--jobs", w->jobs, "so many").Required().Between(1, 10'000'000);
  AddOption(generate, "--seed", w->seed, "where randomness begins; default 0")
      .Between(0, INT64_MAX);
  AddOption(generate, "--rate", w->rate, "jobs an hour; default: as published")
      .Between(1, 1'000'000'000);
  AddOption(generate, "--like", w->like, "gavel or philly; default gavel").OneOf(sim::Likenesses());
  verbs.Formats(generate, "table,json,jsonl,yaml");
}

void AddPooling(Verbs& verbs, CLI::App* sim) {
  auto w = std::make_shared<PoolingWords>();
  auto* pooling = verbs.AddLocal(
      sim, "pooling", "Play a trace with fixed quotas, with guaranteed ones, and elastic",
      "muster sim pooling --workload examples/lab/jobs.csv\n"
      "muster sim pooling --workload examples/lab/jobs.csv --to pool",
      [w, &verbs] { return PoolSim(*w, verbs.common()); });
  AddOption(pooling, "--workload", w->workload, "a trace of the jobs set").Required();
  auto percentiles =
      AddOption(pooling, "--percentiles", w->percentiles,
                "of the demand, with commas: a size of the cluster each; default 95");
  AddOption(pooling, "--node-count", w->node_count, "instead: so many nodes")
      .Between(1, 100'000)
      .Excludes(percentiles);
  AddOption(pooling, "--gpus-per-node", w->gpus_per_node, "GPUs of a node; default 8")
      .Between(1, 64);
  AddOption(pooling, "--to", w->to, "a folder to write: index.html, and the plots as SVG files");
  verbs.Changes(pooling, "also over a report that is there");
  Note(pooling, kPoolingNote);
  verbs.Formats(pooling, "table,wide,json,jsonl,yaml");
}

}  // namespace

void AddLabVerbs(Verbs& verbs) {
  struct Words {
    std::vector<std::string> paths;
    std::string shape;
    std::int64_t nodes = 0;
    int runs = 0;
  };
  auto w = std::make_shared<Words>();
  const auto output = [&verbs] { return verbs.common().output; };

  auto* validate = verbs.AddLocal(
      verbs.app(), "validate", "Check job, queue and cluster files",
      "muster validate train.yaml\nmuster validate queues.yaml -o json", [w, output] {
        if (ForPeople(output())) {
          return RunValidate(w->paths, ValidateFormat::kTable, {std::cin, std::cout, std::cerr});
        }
        std::ostringstream document;
        const int status =
            RunValidate(w->paths, ValidateFormat::kJson, {std::cin, document, std::cerr});
        const int shown = ShowDocument(output(), document.str());
        return shown != 0 ? shown : status;
      });
  AddOption(validate, "FILE", w->paths, "files; - is standard input").Required();

  CLI::App* sim = verbs.Group("sim", "Try policies without a cluster");
  auto* scenarios = verbs.AddLocal(sim, "scenarios", "Run scenario files on the engine",
                                   "muster sim scenarios tests/scenarios",
                                   [w, output] { return RunScenarios(w->paths, output()); });
  AddOption(scenarios, "PATH", w->paths, "files or folders").Required();
  AddSim(verbs, sim);
  AddPooling(verbs, sim);
  AddGenerate(verbs, sim);

  CLI::App* bench = verbs.Group("bench", "Measure this build on this machine");
  auto* engine =
      verbs.AddLocal(bench, "engine", "What scheduling decisions cost",
                     "muster bench engine --shape gang --nodes 100 --runs 3",
                     [w, output] { return RunBenchEngine(w->shape, w->nodes, w->runs, output()); });
  AddOption(engine, "--shape", w->shape, "fill, gang, reclaim, verdict, huge or growth").Required();
  AddOption(engine, "--nodes", w->nodes,
            "number of nodes; default: the shape's own; not with growth")
      .Between(1, 1'000'000);
  AddOption(engine, "--runs", w->runs, "samples to take; default: the shape's own")
      .Between(1, 10'000);

  CLI::App* demo = verbs.Group("demo", "See what Muster does, on a simulated cluster");
  auto* share = verbs.AddLocal(demo, "share", "Eight GPUs, three researchers, one day",
                               "muster demo share", [output] { return RunDemoShare(output()); });
  for (auto* command : {validate, scenarios}) verbs.Formats(command);
  for (auto* command : {engine, share}) verbs.Formats(command, "table,wide,json,jsonl,yaml");
}

}  // namespace muster::cli
