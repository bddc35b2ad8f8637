// Text: what others wrote, made safe and measurable for a terminal.
//
// Names, labels and messages come from other people. Nothing of them may move the cursor, change
// colours or the order of letters, or end a line: such characters, and bytes that are no UTF-8, are
// shown as escapes. Widths are columns on the screen, not bytes: "é" has one, "機" two, an accent
// that is put onto the letter before it none.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

enum class Breaks { kEscape, kKeep };  // line breaks

std::string Clean(std::string_view text, Breaks breaks = Breaks::kEscape);

// The same JSON, with what a terminal would obey, and what is not seen, as escapes.
std::string SafeJson(std::string_view json);

// Of text that is clean.
std::size_t Columns(std::string_view text);
// At most so many columns, with an ellipsis where something was left out.
std::string Cut(std::string_view text, std::size_t columns);
// Filled up with spaces.
std::string Pad(std::string_view text, std::size_t columns);

// In lines of at most so many columns, broken between words where that is possible; all but the
// first begin with `indent` spaces.
std::vector<std::string> Wrap(std::string_view text, std::size_t columns, std::size_t indent);

// "1 worker", "2 workers".
std::string Count(long long number, std::string_view one, std::string_view many = {});

}  // namespace muster::cli
