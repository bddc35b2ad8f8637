#include "shim/process_tree.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "shim/kernel_files.h"

namespace muster::shim {
namespace {

// The entries of a folder that are numbers.
std::vector<pid_t> Numbers(const std::string& folder) {
  struct CloseFolder {
    void operator()(DIR* dir) const { closedir(dir); }
  };
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, CloseFolder> dir(opendir(folder.c_str()));
  while (const dirent* entry = dir ? readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [end, fault] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (fault == std::errc{} && end == name.data() + name.size()) out.push_back(number);
  }
  return out;
}

void AddChildren(pid_t parent, std::vector<pid_t>& out) {
  for (const pid_t thread : Numbers(fmt::format("/proc/{}/task", parent))) {
    const auto text = ReadSmall(fmt::format("/proc/{}/task/{}/children", parent, thread));
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at < end) {
      pid_t child = 0;
      const auto [next, fault] = std::from_chars(at, end, child);
      if (fault == std::errc{}) out.push_back(child);
      at = next == at ? at + 1 : next;
    }
  }
}

// From "123 (a name) with ) in it) S 45 ...", 45.
pid_t ParentOf(pid_t pid) {
  const auto text = ReadSmall(fmt::format("/proc/{}/stat", pid));
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + name_end + 4, text.data() + text.size(), parent);
  return parent;
}

}  // namespace

std::vector<pid_t> Descendants(pid_t root) {
  if (access(fmt::format("/proc/{0}/task/{0}/children", root).c_str(), F_OK) != 0) {
    return DescendantsByScan(root);
  }
  std::vector<pid_t> out;
  AddChildren(root, out);
  for (std::size_t i = 0; i < out.size(); ++i) AddChildren(out[i], out);
  return out;
}

std::vector<pid_t> DescendantsByScan(pid_t root) {
  std::vector<std::pair<pid_t, pid_t>> parents;
  for (const pid_t pid : Numbers("/proc")) parents.emplace_back(pid, ParentOf(pid));
  std::vector<pid_t> out = {root};
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (const auto& [pid, parent] : parents) {
      if (parent == out[i]) out.push_back(pid);
    }
  }
  out.erase(out.begin());
  return out;
}

bool Ignores(pid_t pid, int signal) {
  constexpr std::string_view kField = "SigIgn:\t";
  const auto text = ReadSmall(fmt::format("/proc/{}/status", pid));
  const auto at = text.find(kField);
  if (at == std::string::npos) return false;
  std::uint64_t ignored = 0;
  std::from_chars(text.data() + at + kField.size(), text.data() + text.size(), ignored, 16);
  return (ignored >> (signal - 1) & 1) != 0;
}

void SignalEach(const std::vector<pid_t>& pids, int signal) {
  for (const pid_t pid : pids) kill(pid, signal);
}

}  // namespace muster::shim
