#include "cli/event_file.h"

#include <array>
#include <bit>
#include <concepts>

namespace muster::cli {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected
constexpr std::uint32_t kMaskDelta = 0xA282EAD8;

// Fields of Event, Summary and Summary.Value.
constexpr std::uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr std::uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;

enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1U ^ ((crc & 1U) != 0 ? kPolynomial : 0);
    table.at(byte) = crc;
  }
  return table;
}
constexpr auto kTable = MakeTable();

// A sum that is stored inside of what is summed again would say little; so it is masked.
std::uint32_t Masked(std::string_view bytes) { return std::rotr(Crc32c(bytes), 15) + kMaskDelta; }

template <std::unsigned_integral T>
void PutFixed(std::string& out, T value) {
  for (unsigned shift = 0; shift < sizeof(T) * 8; shift += 8) {
    out.push_back(static_cast<char>(value >> shift & 0xFFU));
  }
}

void PutVarint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<char>(value | 0x80U));
  out.push_back(static_cast<char>(value));
}

void PutKey(std::string& out, std::uint32_t field, Wire wire) {
  PutVarint(out, field << 3U | wire);
}

void PutText(std::string& out, std::uint32_t field, std::string_view text) {
  PutKey(out, field, kBytes);
  PutVarint(out, text.size());
  out += text;
}

void PutWallTime(std::string& out, double wall_s) {
  PutKey(out, kWallTime, kFixed64);
  PutFixed(out, std::bit_cast<std::uint64_t>(wall_s));
}

}  // namespace

std::uint32_t Crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const char byte : bytes) {
    crc = crc >> 8U ^ kTable.at((crc ^ static_cast<unsigned char>(byte)) & 0xFFU);
  }
  return ~crc;
}

EventFile::EventFile(double first_s) {
  std::string event;
  PutWallTime(event, first_s);
  PutText(event, kFileVersion, "brain.Event:2");
  Record(event);
}

void EventFile::Add(double wall_s, std::int64_t step,
                    const std::map<std::string, double>& numbers) {
  std::string summary;
  for (const auto& [name, number] : numbers) {
    std::string value;
    PutText(value, kTag, name);
    PutKey(value, kSimpleValue, kFixed32);
    PutFixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    PutText(summary, kValue, value);
  }
  std::string event;
  PutWallTime(event, wall_s);
  PutKey(event, kStep, kVarint);
  PutVarint(event, static_cast<std::uint64_t>(step));
  PutText(event, kSummary, summary);
  Record(event);
}

void EventFile::Record(std::string_view event) {
  std::string length;
  PutFixed(length, std::uint64_t{event.size()});
  bytes_ += length;
  PutFixed(bytes_, Masked(length));
  bytes_ += event;
  PutFixed(bytes_, Masked(event));
}

}  // namespace muster::cli
