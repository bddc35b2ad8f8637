#include "state/mark.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/files.h"
#include "state/store.h"

namespace muster::state {
namespace {

// Fixed width, so that a shorter text never leaves digits of a longer one behind.
std::string Encode(const Mark& mark) {
  const auto number = [](std::uint64_t value) {
    auto text = std::to_string(value);
    return std::string(20 - text.size(), '0') + text;
  };
  Record sum;
  sum.revision = mark.revision;
  sum.job = mark.next_job;
  return number(mark.revision) + " " + number(mark.next_job) + " " + number(Checksum(sum)) + "\n";
}

}  // namespace

MarkFile::~MarkFile() {
  if (file_ >= 0) ::close(file_);
}

std::optional<Mark> MarkFile::Read() const {
  const auto text = ReadFile(path_, 64);
  if (!text || text->size() != 63) return std::nullopt;
  const Mark mark{std::strtoull(text->c_str(), nullptr, 10),
                  std::strtoull(text->c_str() + 21, nullptr, 10)};
  if (Encode(mark) != *text) return std::nullopt;
  return mark;
}

void MarkFile::Write(const Mark& mark) {
  if (file_ < 0) file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const auto text = Encode(mark);
  [[maybe_unused]] const auto written = ::pwrite(file_, text.data(), text.size(), 0);
}

}  // namespace muster::state
