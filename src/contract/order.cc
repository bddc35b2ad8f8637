#include "contract/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "contract/fields.h"
#include "contract/frames.h"
#include "contract/signals.h"

namespace muster::contract {
namespace {

constexpr std::size_t kLongestLaunch = 200;  // leaves room for the endings within a file name
constexpr int kMostLogFiles = 1000;
constexpr int kMostCores = 65536;

bool HasNul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

void CheckFolder(Fields& fields, const char* key, const std::string& path) {
  if (HasNul(path) || !path.starts_with('/')) fields.Refuse(key, "must be an absolute path");
}

void CheckNotNegative(Fields& fields, const char* key, std::int64_t value) {
  if (value < 0) fields.Refuse(key, "must not be negative");
}

void CheckCommand(Fields& fields, const LaunchOrder& order) {
  if (order.command.empty() || order.command[0].empty()) {
    fields.Refuse("command", "names no program");
  }
  for (const auto& [key, words] : {std::pair("command", &order.command),
                                   {"cleanup", &order.cleanup},
                                   {"exec_prefix", &order.exec_prefix},
                                   {"exec_terminal_prefix", &order.exec_terminal_prefix}}) {
    if (std::any_of(words->begin(), words->end(), HasNul)) {
      fields.Refuse(key, "holds a NUL character");
    }
  }
  for (const auto& [name, value] : order.env) {
    if (name.empty() || name.find('=') != std::string::npos || HasNul(name) || HasNul(value)) {
      fields.Refuse("env", fmt::format("\"{}\" cannot be an environment variable", name));
    }
  }
}

void Check(Fields& fields, const LaunchOrder& order) {
  if (!IsLaunchName(order.launch)) {
    fields.Refuse("launch", "must be 1 to 200 letters, digits, '.', '_' or '-', no dot first");
  }
  CheckFolder(fields, "run_dir", order.run_dir);
  CheckFolder(fields, "spool_dir", order.spool_dir);
  CheckFolder(fields, "log_dir", order.log_dir);
  if (!order.workdir.empty()) CheckFolder(fields, "workdir", order.workdir);
  CheckCommand(fields, order);
  CheckNotNegative(fields, "rank", order.rank);
  if (order.log_bytes < 1) fields.Refuse("log_bytes", "must be positive");
  if (order.log_files < 1 || order.log_files > kMostLogFiles) {
    fields.Refuse("log_files", fmt::format("must be 1 to {}", kMostLogFiles));
  }
  CheckNotNegative(fields, "memory_bytes", order.memory_bytes);
  CheckNotNegative(fields, "cpu_milli", order.cpu_milli);
  CheckNotNegative(fields, "max_processes", order.max_processes);
  CheckNotNegative(fields, "grace_ms", order.grace_ms);
  CheckNotNegative(fields, "term_grace_ms", order.term_grace_ms);
  for (const int core : order.cores) {
    if (core < 0 || core >= kMostCores) fields.Refuse("cores", fmt::format("{} is no core", core));
  }
  if (!order.cgroup_root.empty() && !IsLaunchName(order.cgroup_root)) {
    fields.Refuse("cgroup_root", "must be one name of letters, digits, '.', '_' or '-'");
  }
  if (order.exec_prefix.empty() != order.exec_terminal_prefix.empty()) {
    fields.Refuse("exec_prefix", "and exec_terminal_prefix are given together, or neither");
  }
  if (!IsWindow({order.rows, order.cols})) {
    fields.Refuse("rows", "and cols must be 1 to 65535");
  }
  const auto& wish = order.checkpoint_signal;
  if (!wish.empty() && (!SignalNumber(wish) || wish == "SIGKILL" || wish == "SIGSTOP")) {
    fields.Refuse("checkpoint_signal", fmt::format("\"{}\" is no signal to catch", wish));
  }
}

}  // namespace

bool IsLaunchName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestLaunch && name[0] != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '.' || c == '_' || c == '-';
         });
}

std::string Encode(const LaunchOrder& order) {
  nlohmann::json out = {
      {"version", kContractVersion},
      {"launch", order.launch},
      {"run_dir", order.run_dir},
      {"spool_dir", order.spool_dir},
      {"log_dir", order.log_dir},
      {"rank", order.rank},
      {"log_bytes", order.log_bytes},
      {"log_files", order.log_files},
      {"command", order.command},
      {"workdir", order.workdir},
      {"env", order.env},
      {"memory_bytes", order.memory_bytes},
      {"cpu_milli", order.cpu_milli},
      {"cpu_is_weight", order.cpu_is_weight},
      {"cores", order.cores},
      {"max_processes", order.max_processes},
      {"cgroup_root", order.cgroup_root},
      {"checkpoint_signal", order.checkpoint_signal},
      {"grace_ms", order.grace_ms},
      {"term_grace_ms", order.term_grace_ms},
      {"cleanup", order.cleanup},
      {"terminal", order.terminal},
      {"rows", order.rows},
      {"cols", order.cols},
      {"exec_prefix", order.exec_prefix},
      {"exec_terminal_prefix", order.exec_terminal_prefix},
  };
  if (order.user) {
    out["user"] = {
        {"uid", order.user->uid}, {"gid", order.user->gid}, {"groups", order.user->groups}};
  }
  return Dump(out);
}

Result<LaunchOrder> DecodeOrder(std::string_view text) {
  LaunchOrder order;
  auto error = ReadObject("launch order", text, [&](Fields& fields) {
    fields.Version(kContractVersion);
    fields.Need("launch", order.launch);
    fields.Need("run_dir", order.run_dir);
    fields.Need("spool_dir", order.spool_dir);
    fields.Need("log_dir", order.log_dir);
    fields.Take("rank", order.rank);
    fields.Take("log_bytes", order.log_bytes);
    fields.Take("log_files", order.log_files);
    fields.Need("command", order.command);
    fields.Take("workdir", order.workdir);
    fields.Take("env", order.env);
    if (fields.Has("user")) {
      fields.Object("user", [&](Fields& user) {
        order.user.emplace();
        user.Need("uid", order.user->uid);
        user.Need("gid", order.user->gid);
        user.Take("groups", order.user->groups);
      });
    }
    fields.Take("memory_bytes", order.memory_bytes);
    fields.Take("cpu_milli", order.cpu_milli);
    fields.Take("cpu_is_weight", order.cpu_is_weight);
    fields.Take("cores", order.cores);
    fields.Take("max_processes", order.max_processes);
    fields.Take("cgroup_root", order.cgroup_root);
    fields.Take("checkpoint_signal", order.checkpoint_signal);
    fields.Take("grace_ms", order.grace_ms);
    fields.Take("term_grace_ms", order.term_grace_ms);
    fields.Take("cleanup", order.cleanup);
    fields.Take("terminal", order.terminal);
    fields.Take("rows", order.rows);
    fields.Take("cols", order.cols);
    fields.Take("exec_prefix", order.exec_prefix);
    fields.Take("exec_terminal_prefix", order.exec_terminal_prefix);
    Check(fields, order);
  });
  if (error) return tl::unexpected(*std::move(error));
  return order;
}

}  // namespace muster::contract
