#include "shim/spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "shim/handle.h"
#include "shim/kernel_files.h"

namespace muster::shim {
namespace {

constexpr std::array<const char*, 4> kEndings = {"start", "report", "checkpoint", "exit"};

}  // namespace

Spool::Spool(std::string folder, std::string launch)
    : folder_(std::move(folder)), launch_(std::move(launch)) {}

void Spool::Put(Kind kind, std::string text) {
  waiting_.at(static_cast<std::size_t>(kind)) = std::move(text);
}

bool Spool::Flush() {
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    if (!waiting_[i]) continue;
    if (!Write(kEndings[i], *waiting_[i])) return false;
    waiting_[i].reset();
  }
  return true;
}

bool Spool::waiting() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const auto& w) { return w.has_value(); });
}

bool Spool::Write(const std::string& ending, const std::string& text) const {
  const std::string draft = folder_ + "/.tmp-" + launch_ + "." + ending;
  Handle file(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file) return false;
  const bool whole = WriteAll(file.get(), text) == 0;
  file.Close();
  if (whole && rename(draft.c_str(), (folder_ + "/" + launch_ + "." + ending).c_str()) == 0) {
    return true;
  }
  unlink(draft.c_str());
  return false;
}

}  // namespace muster::shim
