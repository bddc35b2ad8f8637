#include "contract/signals.h"

#include <array>
#include <csignal>
#include <utility>

namespace muster::contract {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 31> kSignals = {{
    {"SIGHUP", SIGHUP},       {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},     {"SIGILL", SIGILL},
    {"SIGTRAP", SIGTRAP},     {"SIGABRT", SIGABRT}, {"SIGBUS", SIGBUS},       {"SIGFPE", SIGFPE},
    {"SIGKILL", SIGKILL},     {"SIGUSR1", SIGUSR1}, {"SIGSEGV", SIGSEGV},     {"SIGUSR2", SIGUSR2},
    {"SIGPIPE", SIGPIPE},     {"SIGALRM", SIGALRM}, {"SIGTERM", SIGTERM},     {"SIGCHLD", SIGCHLD},
    {"SIGCONT", SIGCONT},     {"SIGSTOP", SIGSTOP}, {"SIGTSTP", SIGTSTP},     {"SIGTTIN", SIGTTIN},
    {"SIGTTOU", SIGTTOU},     {"SIGURG", SIGURG},   {"SIGXCPU", SIGXCPU},     {"SIGXFSZ", SIGXFSZ},
    {"SIGVTALRM", SIGVTALRM}, {"SIGPROF", SIGPROF}, {"SIGWINCH", SIGWINCH},   {"SIGIO", SIGIO},
    {"SIGPWR", SIGPWR},       {"SIGSYS", SIGSYS},   {"SIGSTKFLT", SIGSTKFLT},
}};

}  // namespace

std::optional<int> SignalNumber(std::string_view name) {
  for (const auto& [known, number] : kSignals) {
    if (known == name) return number;
  }
  return std::nullopt;
}

std::string SignalName(int number) {
  for (const auto& [name, known] : kSignals) {
    if (known == number) return std::string(name);
  }
  return "signal " + std::to_string(number);
}

}  // namespace muster::contract
