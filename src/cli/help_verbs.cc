// Beginnings: init, clone, completion; and doctor when something is wrong.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/complaint.h"
#include "cli/doctor.h"
#include "cli/help_text.h"
#include "cli/job_verbs.h"
#include "cli/options.h"
#include "cli/verbs.h"

namespace muster::cli {
namespace {

constexpr std::string_view kExample =
    R"(# A job for Muster. Check it with `muster validate FILE`, see where it would run with
# `muster plan FILE`, send it with `muster submit FILE`.
name: example
queue: default                # `muster queue list` shows them
kind: train                   # train, or build for interactive work
priority: normal              # low, normal, high, critical or a number
workers: 1                    # 4: a fixed gang; 2..8: starts with 2, grows to 8
gpus: 1                       # of each worker; 0.25 is a share of one
cpus: 2
memory: 4Gi
# gpu_types: [H100, A100]     # in order of preference; any when left out
# framework: torch            # torch, tensorflow, horovod, mpi, deepspeed, ray, muster
command: [sh, -c, "echo hello from worker $MUSTER_RANK on GPU $CUDA_VISIBLE_DEVICES"]
# workdir: /data/project      # where you are when left out
# env: {EPOCHS: "90"}
# checkpoint: {dir: ckpt, signal: SIGUSR1, grace: 60s}   # asked for before it must leave
# limits: {time: 12h, retries: 3}
)";

constexpr std::string_view kBash =
    R"(# muster completion bash > ~/.local/share/bash-completion/completions/muster
_muster() {
  local IFS=$'\n' found files=0
  found=$(muster __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null) || files=1
  COMPREPLY=($found)
  if [[ $files == 0 ]]; then return; fi
  if [[ ${#COMPREPLY[@]} == 0 ]]; then compopt -o default 2>/dev/null; return; fi
  COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}"))
  compopt -o filenames 2>/dev/null
}
complete -F _muster muster
)";

constexpr std::string_view kZsh = R"(#compdef muster
# muster completion zsh > "${fpath[1]}/_muster"
_muster() {
  local -a found
  local files=0 text
  text=$(muster __complete "${(@)words[2,CURRENT]}" 2>/dev/null) || files=1
  found=("${(@f)text}")
  if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; fi
  if [[ $files == 1 ]]; then _files; fi
}
if [[ "${funcstack[1]}" == _muster ]]; then _muster "$@"; else compdef _muster muster; fi
)";

constexpr std::string_view kFish =
    R"(# muster completion fish > ~/.config/fish/completions/muster.fish
function __muster_complete
  set -l words (commandline -opc) (commandline -ct)
  muster __complete $words[2..-1] 2>/dev/null
  or __fish_complete_path (commandline -ct)
end
complete -c muster -f -a '(__muster_complete)'
)";

int Init(const std::string& path, const Common& common) {
  if (path == "-") {
    if (!ForPeople(common.output)) {
      return Refuse({ErrorCode::kUsage, "the job file itself goes to standard output here",
                     "leave out -o, or name a file"});
    }
    std::cout << kExample;
    return 0;
  }
  const int how = common.yes ? O_TRUNC : O_EXCL;
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | how, 0666);
  if (file < 0 && errno == EEXIST) {
    return Refuse({ErrorCode::kConflict, path + " is there already; it was not touched",
                   "give another name: `muster init other.yaml`, or --yes to write over it"});
  }
  if (file < 0) return Refuse(WriteError(path, errno));
  const auto written = ::write(file, kExample.data(), kExample.size());
  const bool whole = written == static_cast<ssize_t>(kExample.size());
  if (::close(file) != 0 || !whole) {
    return Refuse({ErrorCode::kUnavailable, path + " could not be written", "check the room"});
  }
  std::cerr << "edit it, then: muster submit " << path << '\n';
  if (!ForPeople(common.output)) {
    return ShowDocument(common.output,
                        nlohmann::ordered_json{{"name", path}, {"file", path}}.dump(2));
  }
  std::cout << path << '\n';
  return 0;
}

int Help(CLI::App& app, const std::vector<std::string>& words) {
  CLI::App* at = &app;
  std::string path = "muster";
  for (const auto& word : words) {
    CLI::App* next = Below(*at, word);
    if (next == nullptr) {
      std::cerr << "muster: " << NoVerb(*at, path, word) << '\n';
      return ExitStatus(ErrorCode::kUsage);
    }
    at = next;
    path += " " + word;
  }
  std::cout << HelpOf(*at, path);
  return 0;
}

}  // namespace

void AddHelpVerbs(Verbs& verbs) {
  struct Words {
    std::string path = "job.yaml", job, name, shell;
    std::vector<std::string> verbs;
    bool dry_run = false;
  };
  auto w = std::make_shared<Words>();
  auto* help = verbs.AddLocal(verbs.app(), "help", "What a verb is for, its flags and examples",
                              "muster help\nmuster help queue apply",
                              [w, &verbs] { return Help(*verbs.app(), w->verbs); });
  AddOption(help, "VERB", w->verbs, "a verb, and the one below it");
  verbs.NoOutput(help, "help prints text for people and has no -o; docs/cli.md has it all");
  auto* init = verbs.AddLocal(verbs.app(), "init", "Write a job file to begin with",
                              "muster init train.yaml\nmuster init - | muster validate -",
                              [w, &verbs] { return Init(w->path, verbs.common()); });
  AddOption(init, "FILE", w->path, "default job.yaml; - is standard output");
  verbs.Formats(init);
  verbs.Changes(init, "also over a file that is there");
  auto* clone = verbs.Add(verbs.app(), "clone", "Submit a job once more",
                          "muster clone resnet --name resnet-2",
                          [w](Session& s) { return Clone(s, w->job, w->name, w->dry_run); });
  AddOption(clone, "JOB", w->job, "name, id or @last").Required().NameOf("job");
  AddOption(clone, "--name", w->name, "name of the new one; default: the same");
  AddFlag(clone, "--dry-run", w->dry_run, "check everything and change nothing");
  verbs.Changes(clone);
  auto* completion = verbs.AddLocal(
      verbs.app(), "completion", "A script that completes words in a shell",
      "muster completion bash > ~/.local/share/bash-completion/completions/muster", [w] {
        std::cout << (w->shell == "bash" ? kBash : w->shell == "zsh" ? kZsh : kFish);
        return 0;
      });
  verbs.NoOutput(completion, "completion prints a script for the shell and has no -o");
  AddOption(completion, "SHELL", w->shell, "bash, zsh or fish")
      .Required()
      .OneOf({"bash", "zsh", "fish"});
  verbs.Add(verbs.app(), "doctor", "Look for what is wrong, and say what to do", "muster doctor",
            [&verbs](Session& s) { return Doctor(s, verbs.common().version); });
}

}  // namespace muster::cli
