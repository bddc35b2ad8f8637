// EventFile: curves in the format that TensorBoard reads.
//
// A file is a row of TFRecords, each with its length and contents under a masked CRC-32C, and each
// record is one `Event` of TensorFlow's protocol buffers, of which only a few fields are written:
// the version of the file first, then a summary of plain numbers for every step. Whole in memory,
// since a curve has fewer than a thousand points.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace muster::cli {

class EventFile {
 public:
  explicit EventFile(double first_s);  // wall time of the file's beginning

  void Add(double wall_s, std::int64_t step, const std::map<std::string, double>& numbers);
  const std::string& bytes() const { return bytes_; }

 private:
  void Record(std::string_view event);
  std::string bytes_;
};

// Castagnoli's, as iSCSI has it.
std::uint32_t Crc32c(std::string_view bytes);

}  // namespace muster::cli
