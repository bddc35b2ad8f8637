// Verbs that go into a running worker: attach, exec, shell, port-forward.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/enter.h"
#include "cli/keyboard.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/verbs.h"
#include "client/tunnel.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

constexpr int kInterrupted = 130;

struct EnterOptions {
  std::string job;
  std::int64_t worker = 0;
  std::vector<std::string> command;
  bool no_terminal = false;
  std::string ports;
};

int StatusOf(const Result<client::Played>& played, const std::string& how_back) {
  if (!played) return Refuse(played.error());
  if (played->detached) {
    std::cerr << (played->input_ended ? "the input has ended: " : "\r\n") << "detached; "
              << how_back << '\n';
    return 0;
  }
  return played->exit_code >= 0 ? played->exit_code : 128 + played->signal;
}

int Exec(Session& session, const EnterOptions& options) {
  const bool terminal = AtTerminal() && !options.no_terminal;
  client::Client::Query query{{"worker", std::to_string(options.worker)},
                              {"command", Json(options.command).dump()}};
  if (terminal) query["terminal"] = "1";
  const auto played = client::Play(session.client(), "jobs/" + options.job + "/exec", query,
                                   {.terminal = terminal});
  if (played && played->lost) {
    return Refuse({ErrorCode::kUnavailable,
                   "musterd went away: the program was told to end, what it would have printed is "
                   "lost; the job is not concerned",
                   "run it again; what must outlive the daemon is a job of its own"});
  }
  return StatusOf(played, "the program was told to end");
}

}  // namespace

int LeaveAway(const std::string& job, char key) {
  const bool interrupted = key == kInterruptKey;
  std::cerr << "\r\033[K" << (interrupted ? "job " + job + " goes on; " : "detached; ")
            << "`muster attach " << job << "` comes back" << std::endl;
  return interrupted ? kInterrupted : 0;
}

int Attach(Session& session, const std::string& job, std::int64_t worker) {
  const bool terminal = AtTerminal();
  const std::string how_back = "`muster attach " + job + "` comes back";
  std::string greeting = terminal
                             ? "attached; Ctrl-] leaves it running\r\n"
                             : "attached without a terminal: lines are sent as they are, and the "
                               "end of the input leaves it running\n";
  bool again = false;
  Keyboard keys(terminal, [&job](char key) { return LeaveAway(job, key); });
  session.Persist();
  for (;;) {
    const auto played = client::Play(session.client(), "jobs/" + job + "/attach",
                                     {{"worker", std::to_string(worker)}},
                                     {.terminal = terminal,
                                      .at_input_end = client::AtInputEnd::kLeave,
                                      .greeting = greeting,
                                      .on_joined = [&] {
                                        keys.Release();
                                        if (again) std::cout << kClearScreen << std::flush;
                                      }});
    const bool lost = played && played->lost;
    // Without a terminal whoever reads could not tell what is printed again from what is new.
    if (lost && !terminal) {
      return Refuse(
          {ErrorCode::kUnavailable, "musterd went away; the job is not concerned", how_back});
    }
    if (!lost) keys.Restore();
    if (!lost) return StatusOf(played, how_back);
    keys.Watch();
    std::cerr << "\r\nthe connection was lost; the job is not concerned\r\n";
    if (const auto there = session.client().Get("jobs/" + job); !there) {
      keys.Restore();
      return Refuse(there.error());
    }
    again = true;
    greeting = "attached again\r\n";
  }
}

void AddEnterVerbs(Verbs& verbs) {
  const auto options = std::make_shared<EnterOptions>();
  const auto add = [&](const char* name, const char* help, const char* example,
                       std::function<int(Session&)> call) {
    auto* command = verbs.Add(verbs.app(), name, help, example, std::move(call));
    verbs.NoOutput(command, std::string(name) +
                                " passes on what the program or the port says, as it is, and has "
                                "no -o; flags of a program stand behind --");
    AddOption(command, "JOB", options->job, "name, id or @last").Required().NameOf("job");
    AddOption(command, "--rank", options->worker, "of this worker; default 0")
        .Between(0, kHighestRank);
    return command;
  };
  auto* attach = add("attach", "The terminal of a worker", "muster attach notebook",
                     [options](Session& s) { return Attach(s, options->job, options->worker); });
  Note(attach,
       "Ctrl-] leaves it running. Ctrl-C goes to the program. Without a terminal the end of the\n"
       "input leaves it running.");
  auto* exec = add("exec", "Run a program beside a worker", "muster exec resnet -- nvidia-smi",
                   [options](Session& s) { return Exec(s, *options); });
  AddOption(exec, "COMMAND", options->command, "what to run; put -- before it").Required();
  AddFlag(exec, "-T,--no-terminal", options->no_terminal, "plain streams, also at a terminal");
  auto* shell = add("shell", "A shell beside a worker", "muster shell resnet --rank 1",
                    [options](Session& s) {
                      options->command = {"/bin/sh", "-c",
                                          "exec \"${SHELL:-/bin/sh}\" -i 2>&1 || exec /bin/sh -i"};
                      return Exec(s, *options);
                    });
  for (auto* command : {exec, shell}) {
    Note(command, "At a terminal Ctrl-] leaves it, which ends the program; the job goes on.");
  }
  auto* forward = add("port-forward", "A port of a worker, on this machine",
                      "muster port-forward notebook 8888", [options](Session& s) {
                        return PortForward(s, options->job, options->worker, options->ports);
                      });
  AddOption(forward, "PORT", options->ports,
            "8888, or 9000:8888 for another one here; none: the job's notebook");
}

}  // namespace muster::cli
