#include "device/gpu_names.h"

#include <algorithm>
#include <array>
#include <vector>

namespace muster::device {
namespace {

constexpr std::size_t kLongest = 64;
// The vendor, its old families, and words that say nothing.
constexpr std::array<std::string_view, 7> kEmptyWords = {
    "NVIDIA", "Tesla", "GeForce", "Quadro", "GRID", "Generation", "GPU"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsCapital(char c) { return c >= 'A' && c <= 'Z'; }
bool IsSmall(char c) { return c >= 'a' && c <= 'z'; }

// H200, A100, V100S, L40S, GB200, T4: what follows is packaging.
bool IsDataCentreModel(std::string_view word) {
  const auto letters = static_cast<std::size_t>(
      std::find_if_not(word.begin(), word.end(), IsCapital) - word.begin());
  return letters >= 1 && letters <= 2 && letters < word.size() && IsDigit(word[letters]);
}

bool IsPackaging(std::string_view word) {
  const bool memory = IsDigit(word[0]) && word.size() > 2 && word.substr(word.size() - 2) == "GB";
  return memory || word.rfind("SXM", 0) == 0 || word.rfind("HBM", 0) == 0 || word == "PCIe" ||
         word == "PCIE";
}

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto end_word = [&] {
    const bool empty = std::find(kEmptyWords.begin(), kEmptyWords.end(), word) != kEmptyWords.end();
    if (!word.empty() && !empty) words.push_back(word);
    word.clear();
  };
  for (const char c : text) {
    if (IsDigit(c) || IsCapital(c) || IsSmall(c)) {
      word += c;
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

}  // namespace

std::string ShortGpuType(std::string_view vendor_name) {
  const auto words = Words(vendor_name);
  if (!words.empty() && IsDataCentreModel(words[0])) return words[0].substr(0, kLongest);
  std::string type;
  for (const auto& word : words) {
    if (IsPackaging(word)) continue;
    type += (type.empty() ? "" : "-") + word;
  }
  if (type.empty()) return "GPU";
  // A small first letter would make it a countable thing.
  if (IsSmall(type[0])) type[0] = static_cast<char>(type[0] - 'a' + 'A');
  return type.substr(0, kLongest);
}

}  // namespace muster::device
