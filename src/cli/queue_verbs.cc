// One queue: show, edit and delete.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/options.h"
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
  bool dry_run = false;

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
      const auto& status = got.at("status");
      if (!status.contains(key)) continue;
      std::cout << fmt::format("{:<12} {}\n", label, Plain(status.at(key)));
    }
    if (!Mark(got).empty()) std::cout << fmt::format("{:<12} {}\n", "GPUs", Mark(got));
    std::cout << '\n' << SpecAsYaml(*answer);
  });
}

int DeleteQueue(Session& session, const Words& words, bool yes) {
  const auto sure = Confirm("Delete queue " + words.name + "?", yes || words.dry_run);
  if (!sure) return Refuse(sure.error());
  if (!*sure) {
    std::cerr << "nothing was deleted\n";
    return 1;
  }
  const auto answer = session.client().Delete("queues/" + words.name, words.Query());
  if (!answer) return Refuse(answer.error());
  return session.Show(Acted(*answer), [&](const Json& got) {
    std::cout << (words.dry_run ? "would delete" : "deleted") << " queue " << got.value("name", "")
              << '\n';
  });
}

// The user's editor on a file of their own; an editor that fails changes nothing.
Result<void> RunEditor(const std::string& file, const std::string& program) {
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

// Without one that was named, vi, which needs a terminal.
Result<std::string> EditorNamed() {
  for (const char* variable : {"VISUAL", "EDITOR"}) {
    const char* editor = std::getenv(variable);
    if (editor != nullptr && *editor != '\0') return std::string(editor);
  }
  if (::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1) return std::string("vi");
  return Fail(ErrorCode::kUsage, "no editor is named by $EDITOR, and there is no terminal for vi",
              "set $EDITOR, or use `muster queue apply FILE`");
}

Result<std::string> Edited(const std::string& text, const std::string& program) {
  std::string path = (std::filesystem::temp_directory_path() / "muster-queue-XXXXXX.yaml").string();
  const int file = ::mkstemps(path.data(), 5);
  if (file < 0) return Fail(ErrorCode::kDenied, "cannot write " + path, "check the path and room");
  ::close(file);
  std::ofstream(path) << text;
  auto edited = RunEditor(path, program);
  auto now = edited ? ReadFile(path) : Result<std::string>(tl::unexpected(edited.error()));
  ::unlink(path.c_str());
  return now;
}

int EditQueue(Session& session, const Words& words) {
  const auto editor = EditorNamed();
  if (!editor) return Refuse(editor.error());
  const std::string path = "queues/" + words.name;
  const auto before = session.client().Call("GET", path, {}, "", {});
  if (!before) return Refuse(before.error());
  const auto text = SpecAsYaml(before->body);
  const auto now = Edited(text, *editor);
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
  auto changed = nlohmann::ordered_json::parse(Acted(put->body));
  if (words.dry_run) changed["dry_run"] = true;
  return session.Show(changed.dump(2), [&](const Json& got) {
    std::cout << (words.dry_run ? "would change" : "changed") << " queue " << got.value("name", "")
              << '\n';
  });
}

}  // namespace

void AddQueueVerbs(Verbs& verbs, CLI::App* queue) {
  auto w = std::make_shared<Words>();
  const auto with_name = [&](CLI::App* command) {
    AddOption(command, "QUEUE", w->name, "its full name").Required().NameOf("queue");
    return command;
  };
  verbs.MayWatch(with_name(verbs.Add(queue, "show", "One queue, with its file",
                                     "muster queue show vision/detection",
                                     [w](Session& s) { return ShowQueue(s, w->name); })));
  auto* remove =
      with_name(verbs.Add(queue, "delete", "Remove a queue that has no jobs and none below it",
                          "muster queue delete vision/old --yes", [w, &verbs](Session& s) {
                            return DeleteQueue(s, *w, verbs.common().yes);
                          }));
  verbs.Changes(remove, "do not ask");
  AddFlag(remove, "--dry-run", w->dry_run, "check everything and change nothing");
  auto* edit = with_name(verbs.Add(queue, "edit", "Change a queue's file in $EDITOR",
                                   "EDITOR=nano muster queue edit vision",
                                   [w](Session& s) { return EditQueue(s, *w); }));
  AddFlag(edit, "--dry-run", w->dry_run, "check everything and change nothing");
  verbs.Changes(edit);
}

}  // namespace muster::cli
