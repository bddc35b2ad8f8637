// `muster`: reads the command line and calls what was asked for. No logic of its own.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.h"
#include "cli/complaint.h"
#include "cli/help_text.h"

namespace {

constexpr int kUsageStatus = 2;

// What was printed has arrived; a full disk or a closed pipe is no success.
bool OutputArrived() {
  return std::cout.flush().good() && std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
}

// The words, of which `muster runs` alone, or with flags of a list, means `muster runs list`.
std::vector<std::string> WordsOf(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  std::size_t verb = 0;
  while (verb < words.size() && words[verb].starts_with('-')) {
    verb += words[verb] == "--socket" || words[verb] == "--context" ? 2 : 1;
  }
  if (verb >= words.size() || words[verb] != "runs") return words;
  const auto next = verb + 1 < words.size() ? words[verb + 1] : "-";
  if (next.starts_with('-') && next != "-h" && next != "--help") {
    words.insert(words.begin() + static_cast<std::ptrdiff_t>(verb) + 1, "list");
  }
  return words;
}

// Reads the words, which calls what they ask for; `status` is what that wrote.
int Perform(CLI::App& app, int argc, char** argv, const int& status) {
  auto words = WordsOf(argc, argv);
  if (const auto unknown = muster::cli::UnknownVerb(app, words); !unknown.empty()) {
    std::cerr << "muster: " << unknown << "\n";
    return kUsageStatus;
  }
  try {
    std::reverse(words.begin(), words.end());  // as the parser takes them
    app.parse(std::move(words));
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
  app.failure_message(muster::cli::Complaint);
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
