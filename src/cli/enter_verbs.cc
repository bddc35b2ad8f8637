// Verbs that go into a running worker: attach, exec, shell, port-forward.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/enter.h"
#include "cli/verbs.h"
#include "client/tunnel.h"

namespace muster::cli {
namespace {

using Json = nlohmann::json;

struct EnterOptions {
  std::string job;
  std::int64_t worker = 0;
  std::vector<std::string> command;
  bool no_terminal = false;
  std::string ports;
};

bool AtTerminal() { return ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1; }

int StatusOf(const Result<client::Played>& played, const std::string& how_back) {
  if (!played) return Refuse(played.error());
  if (played->detached) {
    std::cerr << "\r\ndetached; " << how_back << '\n';
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
                                   {.terminal = terminal, .input = true});
  return StatusOf(played, "the program was told to end");
}

struct Ports {
  std::uint16_t local = 0;
  std::uint16_t remote = 0;
};

// "8888" or "9000:8888".
Result<Ports> ParsePorts(const std::string& text) {
  const auto colon = text.find(':');
  const auto number = [](const std::string& word) {
    const bool digits = !word.empty() && word.size() <= 5 &&
                        word.find_first_not_of("0123456789") == std::string::npos;
    const int value = digits ? std::stoi(word) : -1;
    return value <= 65535 ? value : -1;
  };
  const int local = number(text.substr(0, colon));
  const int remote = colon == std::string::npos ? local : number(text.substr(colon + 1));
  if (local < 0 || remote < 1) {
    return Fail(ErrorCode::kUsage, "\"" + text + "\" is no port", "write 8888, or 9000:8888");
  }
  return Ports{static_cast<std::uint16_t>(local), static_cast<std::uint16_t>(remote)};
}

Result<int> ListenHere(Ports& ports) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(ports.local);
  auto* const to = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof address;
  if (::bind(listener, to, size) != 0 || ::listen(listener, 16) != 0 ||
      ::getsockname(listener, to, &size) != 0) {
    const std::string why = std::strerror(errno);
    ::close(listener);
    return Fail(ErrorCode::kConflict,
                "cannot listen on 127.0.0.1:" + std::to_string(ports.local) + ": " + why,
                "choose another port here: 9000:" + std::to_string(ports.remote));
  }
  ports.local = ntohs(address.sin_port);
  return listener;
}

int PortForward(Session& session, const EnterOptions& options) {
  auto ports = ParsePorts(options.ports);
  if (!ports) return Refuse(ports.error());
  // Whether the job can be had is said now, not with the first connection.
  const auto job = session.client().Get("jobs/" + options.job);
  if (!job) return Refuse(job.error());
  const auto listener = ListenHere(*ports);
  if (!listener) return Refuse(listener.error());
  std::signal(SIGPIPE, SIG_IGN);
  std::cerr << "http://127.0.0.1:" << ports->local << " leads to port " << ports->remote
            << " of job " << Json::parse(*job).value("id", "") << "; Ctrl-C ends it\n";
  const std::string path = "jobs/" + options.job + "/forward";
  const client::Client::Query query{{"worker", std::to_string(options.worker)},
                                    {"port", std::to_string(ports->remote)}};
  while (true) {
    const int socket = ::accept4(*listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    std::thread([target = session.target(), path, query, socket] {
      client::Client own(target);
      const auto carried = client::Carry(own, path, query, socket);
      if (!carried) Refuse(carried.error());
    }).detach();
  }
}

}  // namespace

int Attach(Session& session, const std::string& job, std::int64_t worker) {
  const bool terminal = AtTerminal();
  if (terminal) std::cerr << "attached; Ctrl-] leaves it running\n";
  const auto played =
      client::Play(session.client(), "jobs/" + job + "/attach",
                   {{"worker", std::to_string(worker)}}, {.terminal = terminal, .input = true});
  return StatusOf(played, "`muster attach " + job + "` comes back");
}

void AddEnterVerbs(Verbs& verbs) {
  const auto options = std::make_shared<EnterOptions>();
  const auto common = [&](CLI::App* command) {
    command->add_option("JOB", options->job, "name, id or @last")->required();
    command->add_option("--rank", options->worker, "of this worker; default 0")
        ->check(CLI::Range(0, 99'999));
    return command;
  };
  common(verbs.Add(verbs.app(), "attach", "The terminal of a worker", "muster attach notebook",
                   [options](Session& s) { return Attach(s, options->job, options->worker); }));
  auto* exec = common(verbs.Add(verbs.app(), "exec", "Run a program beside a worker",
                                "muster exec resnet -- nvidia-smi",
                                [options](Session& s) { return Exec(s, *options); }));
  exec->add_option("COMMAND", options->command, "what to run; put -- before it")->required();
  exec->add_flag("-T,--no-terminal", options->no_terminal, "plain streams, also at a terminal");
  common(verbs.Add(verbs.app(), "shell", "A shell beside a worker", "muster shell resnet --rank 1",
                   [options](Session& s) {
                     options->command = {"/bin/sh", "-c",
                                         "exec \"${SHELL:-/bin/sh}\" -i 2>&1 || exec /bin/sh -i"};
                     return Exec(s, *options);
                   }));
  auto* forward =
      common(verbs.Add(verbs.app(), "port-forward", "A port of a worker, on this machine",
                       "muster port-forward notebook 8888",
                       [options](Session& s) { return PortForward(s, *options); }));
  forward->add_option("PORT", options->ports, "8888, or 9000:8888 for another one here")
      ->required();
}

}  // namespace muster::cli
