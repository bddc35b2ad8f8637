// Verbs that need no daemon: validate, and the lab with sim, bench and demo.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cli/bench.h"
#include "cli/demo.h"
#include "cli/scenarios.h"
#include "cli/validate.h"
#include "cli/verbs.h"

namespace muster::cli {

void AddLabVerbs(Verbs& verbs) {
  struct Words {
    std::vector<std::string> paths;
    std::string shape;
    std::int64_t nodes = 0;
    int runs = 0;
  };
  auto w = std::make_shared<Words>();
  const auto as_json = [&verbs] { return verbs.common().output == Output::kJson; };

  auto* validate = verbs.AddLocal(
      verbs.app(), "validate", "Check job, queue and cluster files",
      "muster validate train.yaml\nmuster validate queues.yaml -o json", [w, as_json] {
        const auto form = as_json() ? ValidateFormat::kJson : ValidateFormat::kTable;
        return RunValidate(w->paths, form, {std::cin, std::cout, std::cerr});
      });
  validate->add_option("FILE", w->paths, "files; - is standard input")->required();

  CLI::App* sim = verbs.Group("sim", "Try policies without a cluster");
  auto* scenarios = verbs.AddLocal(sim, "scenarios", "Run scenario files on the engine",
                                   "muster sim scenarios tests/scenarios",
                                   [w, as_json] { return RunScenarios(w->paths, as_json()); });
  scenarios->add_option("PATH", w->paths, "files or folders")->required();

  CLI::App* bench = verbs.Group("bench", "Measure this build on this machine");
  auto* engine = verbs.AddLocal(
      bench, "engine", "What scheduling decisions cost",
      "muster bench engine --shape gang --nodes 100 --runs 3",
      [w, as_json] { return RunBenchEngine(w->shape, w->nodes, w->runs, as_json()); });
  engine->add_option("--shape", w->shape, "fill, gang, reclaim, verdict, huge or growth")
      ->required();
  engine
      ->add_option("--nodes", w->nodes,
                   "number of nodes; default: the shape's own; not with growth")
      ->check(CLI::Range(1, 1'000'000));
  engine->add_option("--runs", w->runs, "samples to take; default: the shape's own")
      ->check(CLI::Range(1, 10'000));

  CLI::App* demo = verbs.Group("demo", "See what Muster does, on a simulated cluster");
  auto* share = verbs.AddLocal(demo, "share", "Eight GPUs, three researchers, one day",
                               "muster demo share", [as_json] { return RunDemoShare(as_json()); });
  for (auto* command : {validate, scenarios, engine, share}) verbs.Formats(command, "table,json");
}

}  // namespace muster::cli
