#include "model/vocabulary.h"

#include <algorithm>
#include <string>

namespace muster::model {
namespace {

constexpr std::size_t kMaxName = 128;
constexpr std::size_t kMaxPath = 253;
constexpr std::ptrdiff_t kMaxQueueLevels = 16;

bool IsSmall(char c) { return c >= 'a' && c <= 'z'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordCharacter(char c) { return IsSmall(c) || IsCapital(c) || IsDigit(c); }

bool Matches(std::string_view text, std::size_t most, std::string_view also) {
  if (text.empty() || text.size() > most || !IsWordCharacter(text[0])) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return IsWordCharacter(c) || also.find(c) != std::string_view::npos;
  });
}

}  // namespace

bool IsName(std::string_view text) { return Matches(text, kMaxName, "._-"); }

bool IsJobName(std::string_view text) {
  return IsName(text) && !std::all_of(text.begin(), text.end(), IsDigit);
}

bool IsQueuePath(std::string_view text) {
  if (text.size() > kMaxPath || std::count(text.begin(), text.end(), '/') >= kMaxQueueLevels) {
    return false;
  }
  while (true) {
    const auto end = text.find('/');
    if (!IsName(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool IsLabelName(std::string_view text) { return Matches(text, kMaxPath, "._-/:"); }

bool IsVariableName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPath && !IsDigit(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsWordCharacter(c) || c == '_'; });
}

bool IsGpuTypeName(std::string_view text) {
  return Matches(text, kMaxName, "._-") && (!IsSmall(text[0]) || text == kVirtualGpuType);
}

bool IsCountableName(std::string_view text) {
  return Matches(text, kMaxName, "._-/") && IsSmall(text[0]) && text != kVirtualGpuType &&
         text != kGpus && text != kCpus && text != kMemory;
}

std::string_view MeantResource(std::string_view text) {
  struct Slip {
    std::string_view written;
    std::string_view meant;
  };
  constexpr std::array<Slip, 13> kSlips = {{{"gpu", kGpus},
                                            {"gpus", kGpus},
                                            {"cpu", kCpus},
                                            {"cpus", kCpus},
                                            {"core", kCpus},
                                            {"cores", kCpus},
                                            {"mem", kMemory},
                                            {"memory", kMemory},
                                            {"ram", kMemory},
                                            {"gpu_mem", "gpu_memory"},
                                            {"gpu_memory", "gpu_memory"},
                                            {"gpu_device", "gpu_devices"},
                                            {"gpu_devices", "gpu_devices"}}};
  std::string lower(text);
  for (auto& c : lower) {
    if (IsCapital(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  for (const auto& slip : kSlips) {
    if (lower == slip.written && text != slip.meant) return slip.meant;
  }
  return {};
}

}  // namespace muster::model
