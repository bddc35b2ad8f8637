// One queue: show, edit and delete.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/verbs.h"
#include "model/document.h"
#include "model/document_writer.h"
#include "model/problems.h"
#include "model/spec_codec.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct Words {
  std::string name;
  bool yes = false, dry_run = false;

  client::Client::Query Query() const {
    client::Client::Query query;
    if (dry_run) query["dry_run"] = "1";
    return query;
  }
};

std::string SpecAsYaml(const std::string& queue_json) {
  const auto spec = nlohmann::ordered_json::parse(queue_json).at("spec");
  nlohmann::ordered_json file;
  file["queues"] = nlohmann::ordered_json::array({spec});
  model::Problems problems;
  std::string text;
  for (const auto& document : model::ParseDocuments(file.dump(), problems)) {
    text += model::WriteYaml(document);
  }
  return text;
}

int ShowQueue(Session& session, const std::string& name) {
  const auto answer = session.client().Get("queues/" + name);
  return session.Show(answer, [&](const Json& got) {
    for (const auto& [key, label] : {std::pair{"gpu_quota", "quota"},
                                     {"gpu_limit", "limit"},
                                     {"gpus_held", "held"},
                                     {"gpu_fair_share", "fair share"},
                                     {"gpus_asked", "asked for"},
                                     {"jobs_running", "running"},
                                     {"jobs_waiting", "waiting"}}) {
      if (got.contains(key)) std::cout << fmt::format("{:<12} {}\n", label, Plain(got.at(key)));
    }
    if (!Mark(got).empty()) std::cout << fmt::format("{:<12} {}\n", "GPUs", Mark(got));
    std::cout << '\n' << SpecAsYaml(*answer);
  });
}

// Asked on a terminal; elsewhere nobody could answer.
Result<bool> Confirm(const std::string& question, bool yes) {
  if (yes) return true;
  if (::isatty(STDIN_FILENO) != 1) {
    return Fail(ErrorCode::kUsage, question + " Nobody can answer here", "add --yes");
  }
  std::cerr << question << " [y/N] ";
  std::string line;
  std::getline(std::cin, line);
  return line == "y" || line == "Y" || line == "yes";
}

int DeleteQueue(Session& session, const Words& words) {
  const auto sure = Confirm("Delete queue " + words.name + "?", words.yes || words.dry_run);
  if (!sure) return Refuse(sure.error());
  if (!*sure) {
    std::cerr << "nothing was deleted\n";
    return 1;
  }
  return session.Show(session.client().Delete("queues/" + words.name, words.Query()),
                      [&](const Json&) {
                        std::cout << (words.dry_run ? "would delete" : "deleted") << " queue "
                                  << words.name << '\n';
                      });
}

// The user's editor on a file of their own; an editor that fails changes nothing.
Result<void> RunEditor(const std::string& file) {
  const char* visual = std::getenv("VISUAL");
  const char* editor = visual != nullptr && *visual != '\0' ? visual : std::getenv("EDITOR");
  const std::string program = editor == nullptr || *editor == '\0' ? "vi" : editor;
  const std::string line = program + " \"$1\"";  // $EDITOR may have flags
  const pid_t child = ::fork();
  if (child < 0) return Fail(ErrorCode::kInternal, "no process could be made for the editor");
  if (child == 0) {
    ::execl("/bin/sh", "sh", "-c", line.c_str(), "sh", file.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Fail(ErrorCode::kConflict, "the editor \"" + program + "\" failed; nothing was changed",
              "set $EDITOR to one that works");
}

Result<std::string> Edited(const std::string& text) {
  std::string path = (std::filesystem::temp_directory_path() / "muster-queue-XXXXXX.yaml").string();
  const int file = ::mkstemps(path.data(), 5);
  if (file < 0) return Fail(ErrorCode::kDenied, "cannot write " + path, "check the path and room");
  ::close(file);
  std::ofstream(path) << text;
  auto edited = RunEditor(path);
  auto now = edited ? ReadFile(path) : Result<std::string>(tl::unexpected(edited.error()));
  ::unlink(path.c_str());
  return now;
}

int EditQueue(Session& session, const Words& words) {
  const std::string path = "queues/" + words.name;
  const auto before = session.client().Call("GET", path, {}, "", {});
  if (!before) return Refuse(before.error());
  const auto text = SpecAsYaml(before->body);
  const auto now = Edited(text);
  if (!now) return Refuse(now.error());
  if (*now == text) {
    std::cerr << "nothing was changed\n";
    return 0;
  }
  const auto decoded = model::DecodeSpec(*now);
  for (const auto& problem : decoded.problems.Sorted()) {
    std::cerr << "line " << problem.mark.line << ": " << model::Describe(problem) << '\n';
  }
  if (decoded.problems.HasErrors()) {
    std::cerr << *now;  // or the work would be lost
    return Refuse({ErrorCode::kInvalid, "the queue was not changed", "edit it again"});
  }
  auto put = session.client().Call("PUT", path, words.Query(), *now, {.if_match = before->tag});
  if (!put && put.error().code == ErrorCode::kConflict) {
    std::cerr << *now;
    const auto fresh = session.client().Call("GET", path, {}, "", {});
    if (fresh && fresh->tag != before->tag) {
      put.error().message = "queue " + words.name + " was changed by someone else meanwhile";
      put.error().hint = "`muster queue edit " + words.name + "` again; your text is above";
    }
  }
  if (!put) return Refuse(put.error());
  return session.Show(put->body, [&](const Json&) {
    std::cout << (words.dry_run ? "would change" : "changed") << " queue " << words.name << '\n';
  });
}

}  // namespace

void AddQueueVerbs(Verbs& verbs, CLI::App* queue) {
  auto w = std::make_shared<Words>();
  const auto with_name = [&](CLI::App* command) {
    command->add_option("QUEUE", w->name, "its full name")->required();
    return command;
  };
  with_name(verbs.Add(queue, "show", "One queue, with its file",
                      "muster queue show vision/detection",
                      [w](Session& s) { return ShowQueue(s, w->name); }));
  auto* remove = with_name(verbs.Add(
      queue, "delete", "Remove a queue that has no jobs and none below it",
      "muster queue delete vision/old --yes", [w](Session& s) { return DeleteQueue(s, *w); }));
  remove->add_flag("-y,--yes", w->yes, "do not ask");
  remove->add_flag("--dry-run", w->dry_run, "check only");
  auto* edit = with_name(verbs.Add(queue, "edit", "Change a queue's file in $EDITOR",
                                   "EDITOR=nano muster queue edit vision",
                                   [w](Session& s) { return EditQueue(s, *w); }));
  edit->add_flag("--dry-run", w->dry_run, "check only");
}

}  // namespace muster::cli
