// Settings: short texts like "adam:beta1=0.9,decay=0.01" or "mlp:64,128,10".
//
// A word, then after a colon settings with commas between them, each a name and a value or a value
// alone. Every mistake names what was written and what may be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::train {

struct Setting {
  std::string name;  // empty: a value alone
  std::string value;
};

struct Settings {
  std::string text;  // as written
  std::string word;
  std::vector<Setting> list;
};

Result<Settings> ParseSettings(std::string_view text);

// Where a value goes. A number must lie in [least, most].
struct Wanted {
  std::string_view name;
  double* number = nullptr;
  std::int64_t* integer = nullptr;
  double least = 0;
  double most = 1e12;
};

// Every setting has a name and is wanted, none comes twice; those that do not come stay as they
// were.
Result<void> ReadSettings(const Settings& settings, std::span<const Wanted> wanted);

std::optional<double> ParseNumber(std::string_view text);
std::optional<std::int64_t> ParseInteger(std::string_view text);

}  // namespace muster::train
