// `muster`: reads the command line and calls what was asked for. No logic of its own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench.h"
#include "cli/commands.h"
#include "cli/demo.h"
#include "cli/scenarios.h"
#include "cli/validate.h"

namespace {

constexpr int kUsageStatus = 2;

// The first word that should be a command and is not, with those that are; empty: there is none.
std::string UnknownCommand(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc && argv[i][0] != '-'; ++i) {
    const CLI::App* next = nullptr;
    std::string known;
    for (const CLI::App* command : at->get_subcommands({})) {
      if (command->get_name() == argv[i]) next = command;
      known += (known.empty() ? "" : ", ") + command->get_name();
    }
    if (known.empty()) return "";
    if (next == nullptr)
      return "no command \"" + std::string(argv[i]) + "\" (one of " + known + ")";
    at = next;
  }
  return "";
}

// What was printed has arrived; a full disk or a closed pipe is no success.
bool OutputArrived() {
  return std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

// Reads the words, which calls what they ask for; `status` is what that wrote.
int Perform(CLI::App& app, int argc, char** argv, const int& status) {
  if (const auto unknown = UnknownCommand(app, argc, argv); !unknown.empty()) {
    std::cerr << "muster: " << unknown << "\n";
    return kUsageStatus;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageStatus;
  }
  if (!OutputArrived()) {
    std::cerr << "muster: the output could not be written\n";
    return 1;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Muster: every GPU of an organisation as one shared pool"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "muster " MUSTER_VERSION);
  int status = 0;
  std::string format = "table";
  std::vector<std::string> paths;
  const auto add_format = [&format](CLI::App* command) {
    command->add_option("-o,--output", format, "table or json")->check([](const std::string& word) {
      return word == "table" || word == "json" ? std::string()
                                               : "-o takes table or json, not \"" + word + "\"";
    });
  };

  CLI::App* sim = app.add_subcommand("sim", "Try policies without a cluster");
  sim->require_subcommand(1);
  CLI::App* scenarios = sim->add_subcommand("scenarios", "Run scenario files on the engine");
  scenarios->add_option("PATH", paths, "files or folders")->required();
  add_format(scenarios);
  scenarios->callback([&] { status = muster::cli::RunScenarios(paths, format == "json"); });

  CLI::App* bench = app.add_subcommand("bench", "Measure this build on this machine");
  bench->require_subcommand(1);
  std::string shape;
  std::int64_t nodes = 0;
  int runs = 0;
  CLI::App* bench_engine = bench->add_subcommand("engine", "What scheduling decisions cost");
  bench_engine->add_option("--shape", shape, "fill, gang, reclaim, verdict, huge or growth")
      ->required();
  bench_engine
      ->add_option("--nodes", nodes, "number of nodes; default: the shape's own; not with growth")
      ->check(CLI::Range(1, 1'000'000));
  bench_engine->add_option("--runs", runs, "samples to take; default: the shape's own")
      ->check(CLI::Range(1, 10'000));
  add_format(bench_engine);
  bench_engine->callback(
      [&] { status = muster::cli::RunBenchEngine(shape, nodes, runs, format == "json"); });

  CLI::App* demo = app.add_subcommand("demo", "See what Muster does, on a simulated cluster");
  demo->require_subcommand(1);
  CLI::App* share = demo->add_subcommand("share", "Eight GPUs, three researchers, one day");
  add_format(share);
  share->callback([&] { status = muster::cli::RunDemoShare(format == "json"); });

  CLI::App* validate = app.add_subcommand("validate", "Check job, queue and cluster files");
  validate->add_option("FILE", paths, "files; - is standard input")->required();
  add_format(validate);
  validate->callback([&] {
    const auto kind =
        format == "json" ? muster::cli::ValidateFormat::kJson : muster::cli::ValidateFormat::kTable;
    status = muster::cli::RunValidate(paths, kind, {std::cin, std::cout, std::cerr});
  });

  const muster::cli::DaemonCommands daemon_commands(app, status, MUSTER_VERSION);

  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    for (const auto& word : daemon_commands.Complete({argv + 2, argv + argc})) {
      std::cout << word << '\n';
    }
    return OutputArrived() ? 0 : 1;
  }
  return Perform(app, argc, argv, status);
}
