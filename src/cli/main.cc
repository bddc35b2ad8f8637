// `muster`: reads the command line and calls what was asked for. No logic of its own.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "cli/help_text.h"
#include "cli/text.h"

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
    if (next == nullptr) {
      return "no verb \"" + muster::cli::Clean(argv[i]) + "\" (" +
             (at == &app ? "`muster --help` lists them" : "one of " + known) + ")";
    }
    at = next;
  }
  return "";
}

// In our words, and with the help that is meant.
std::string Complaint(const CLI::App* app, const CLI::Error& error) {
  std::string path = "muster";
  for (const auto* at = app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    path += " " + at->get_name();
  }
  std::string said = error.what();
  for (const std::string_view stiff : {"The following argument was not expected: ",
                                       "The following arguments were not expected: "}) {
    if (said.starts_with(stiff)) said.replace(0, stiff.size(), "this is not known here: ");
  }
  if (said.find("subcommand is required") != std::string::npos) said = "which verb is meant?";
  return "muster: " + muster::cli::Clean(said, muster::cli::Breaks::kKeep) + " (`" + path +
         " --help` tells more)\n";
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
  CLI::App app{"Muster: every GPU of an organisation as one shared pool", "muster"};
  app.formatter(muster::cli::MakeFormatter());
  app.failure_message(Complaint);
  app.set_help_flag("-h,--help", "print this text");
  app.require_subcommand(1);
  app.set_version_flag("--version", "muster " MUSTER_VERSION, "print our version");
  int status = 0;
  const muster::cli::Commands commands(app, status, MUSTER_VERSION);
  muster::cli::GroupVerbs(app);

  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    const auto found = commands.Complete({argv + 2, argv + argc});
    for (const auto& word : found.words) std::cout << word << '\n';
    return OutputArrived() && !found.files ? 0 : 1;  // 1: the shell may offer files too
  }
  if (argc > 1 && std::string_view(argv[1]) == "__docs") {
    const std::string kind = argc > 2 ? argv[2] : "markdown";
    std::cout << muster::cli::WriteDocs(app, kind, MUSTER_VERSION);
    return OutputArrived() ? 0 : 1;
  }
  return Perform(app, argc, argv, status);
}
