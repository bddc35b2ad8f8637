#include "train/run/audit.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.h"

namespace muster::train {

Result<std::unique_ptr<Audit>> Audit::Open(const std::string& path, const Workload& workload) {
  if (workload.EpochSamples() == 0) {
    return Fail(ErrorCode::kInvalid, "this model does not say which samples it takes",
                "leave out --audit, or say it: docs/torch.md, A module of your own");
  }
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!fd) return tl::unexpected(WriteError(path, errno));
  return std::unique_ptr<Audit>(new Audit(path, std::move(fd), workload));
}

// One call for a line: what several workers append does not mix, and a kill leaves no half of one.
bool Audit::Append(const std::string& line) {
  ssize_t written = 0;
  do {
    written = ::write(fd_.get(), line.data(), line.size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line.size())) return true;
  int none = 0;
  reason_.compare_exchange_strong(none, written < 0 ? errno : ENOSPC);
  return false;
}

void Audit::Enter(const View& view, const Grid& grid) {
  generation_ = view.generation;
  Append(fmt::format("view {} step {} members {} columns {} shards {} epoch {}\n", generation_,
                     view.step, view.members.size(), grid.columns(), grid.shards(),
                     workload_.EpochSamples()));
}

bool Audit::Take(std::int64_t completed, int column, int shard) {
  return Append(fmt::format("take {} {} column {} shard {} samples {}\n", generation_,
                            completed + 1, column, shard,
                            fmt::join(workload_.SamplesOf(completed, shard), ",")));
}

void Audit::Done(std::int64_t completed) {
  Append(fmt::format("done {} {}\n", generation_, completed));
}

Result<void> Audit::status() const {
  const int reason = reason_;
  if (reason == 0) return {};
  return tl::unexpected(WriteError(path_, reason));
}

}  // namespace muster::train
