#include "shim/queries.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace muster::shim {
namespace {

constexpr char kBell = 0x07, kCancel = 0x18, kSubstitute = 0x1a, kEscape = 0x1b, kEnquire = 0x05,
               kDelete = 0x7f;

bool IsBetween(char c, char first, char last) { return c >= first && c <= last; }
bool IsControl(char c) { return IsBetween(c, 0x00, 0x1f); }

// The number at the front; -1: there is none.
int NumberOf(std::string_view text) {
  int number = -1;
  for (const char c : text) {
    if (!IsBetween(c, '0', '9')) break;
    number = std::min(9999, std::max(number, 0) * 10 + (c - '0'));
  }
  return number;
}

// `text` is what stands behind ESC [, without controls.
bool AsksCsi(std::string_view text) {
  const char last = text.back();
  text.remove_suffix(1);
  char mark = 0;
  if (!text.empty() && IsBetween(text[0], '<', '?')) mark = text[0];
  const auto inner = std::find_if(text.begin(), text.end(), [](char c) { return c < '0'; });
  const char between = inner == text.end() ? '\0' : *inner;
  const auto is = [&](char with_mark, char with_between, char with_last) {
    return mark == with_mark && between == with_between && last == with_last;
  };
  if (is(0, 0, 't')) {  // 22 and 23 keep and restore a title, those below 11 move the window
    const int wish = NumberOf(text);
    return wish >= 11 && wish <= 21;
  }
  if (between == '$' && (last == 'p' || last == 'w' || last == 'u')) return true;
  return is(0, 0, 'n') || is('?', 0, 'n') ||                     // state, place of the cursor
         is(0, 0, 'c') || is('>', 0, 'c') || is('=', 0, 'c') ||  // what it is
         is('>', 0, 'q') || is('?', 0, 'u') || is('?', 0, 'm') || is('?', 0, 'S') ||
         is(0, 0, 'x') || is(0, '*', 'y') || is(0, '\'', '|') || is(0, '&', 'u') ||
         is(0, '"', 'v') || is(0, '+', 'x') || is(0, '#', 'R') || is(0, '#', '|');
}

// OSC: titles and links, and colours that are set.
bool KeepsOsc(std::string_view text) {
  const int number = NumberOf(text);
  if (number == 0 || number == 1 || number == 2 || number == 8) return true;
  const bool colors = number == 4 || number == 5 || (number >= 10 && number <= 19) ||
                      number == 104 || number == 105 || (number >= 110 && number <= 119);
  return colors && text.find('?') == std::string_view::npos;
}

// DCS: sixel pictures.
bool KeepsDcs(std::string_view text) {
  const auto first = std::find_if(text.begin(), text.end(),
                                  [](char c) { return c != ';' && !IsBetween(c, '0', '9'); });
  return first != text.end() && *first == 'q';
}

class Filter {
 public:
  explicit Filter(std::string_view shown) { out_.reserve(shown.size()); }

  void Take(char c) {
    if (lead_) {
      lead_ = false;
      if (IsBetween(c, '\x80', '\xbf')) return TakeSecond(c);
      // Alone it means nothing, and is not to become the half of something.
    }
    if (c == '\xc2') {
      lead_ = true;
      return;
    }
    TakeByte(c);
  }

  std::string End() {
    // What has begun is ended by what the program prints next: that is not shown again.
    if (in_string_) out_ += held_;
    if (state_ != State::kText) out_ += sequence_;
    if (lead_) out_ += '\xc2';
    return std::move(out_);
  }

 private:
  enum class State : std::uint8_t { kText, kBegun, kCsi, kString };

  // U+0080 to U+00BF; those below U+00A0 are controls of two bytes.
  void TakeSecond(char c) {
    if (c == '\x9c') return TakeEnd();
    const bool begins = c == '\x9b' || c == '\x9d' || c == '\x90' || c == '\x98' || c == '\x9e' ||
                        c == '\x9f' || c == '\x9a';
    if (begins) {
      Begin();
      return TakeByte(static_cast<char>(c - 0x40));
    }
    TakeByte('\xc2');
    TakeByte(c);
  }

  void Begin() {
    state_ = State::kBegun;
    sequence_ = kEscape;
  }
  void TakeEnd() {  // of a string
    if (state_ == State::kString) EndString();
    state_ = State::kText;
  }

  void TakeByte(char c) {
    if (c == kEscape) {
      in_string_ = state_ == State::kString;
      held_ = in_string_ ? sequence_ : "";
      return Begin();
    }
    if (c == kCancel || c == kSubstitute) {
      state_ = State::kText;
      in_string_ = false;
      return;
    }
    if (state_ == State::kString) {
      if (c == kBell && sequence_[1] == ']') return TakeEnd();
      if (!IsControl(c)) sequence_ += c;
      return;
    }
    if (IsControl(c)) {  // obeyed at once, also within a sequence
      if (c != kEnquire) out_ += c;
      return;
    }
    if (state_ == State::kText) {
      out_ += c;
    } else if (state_ == State::kBegun) {
      TakeEscape(c);
    } else {
      TakeCsi(c);
    }
  }

  void TakeEscape(char c) {
    if (c == '\\' && in_string_) {
      in_string_ = false;
      sequence_ = std::move(held_);
      state_ = State::kString;
      return TakeEnd();
    }
    in_string_ = false;
    if (c == kDelete) return;  // a terminal passes over it
    if (!IsBetween(c, ' ', '~')) {
      state_ = State::kText;
      out_ += c;
      return;
    }
    sequence_ += c;
    if (sequence_.size() == 2) {
      if (c == '[') {
        state_ = State::kCsi;
        return;
      }
      if (std::string_view("]PX^_").find(c) != std::string_view::npos) {
        state_ = State::kString;
        return;
      }
    }
    if (IsBetween(c, ' ', '/')) return;
    state_ = State::kText;
    if (c != 'Z' || sequence_.size() > 2) out_ += sequence_;
  }

  void TakeCsi(char c) {
    if (!IsBetween(c, ' ', '~')) return;  // passed over
    sequence_ += c;
    if (c < '@') return;
    state_ = State::kText;
    if (!AsksCsi(std::string_view(sequence_).substr(2))) out_ += sequence_;
  }

  void EndString() {
    const auto text = std::string_view(sequence_).substr(2);
    const bool kept = sequence_[1] == ']' ? KeepsOsc(text) : sequence_[1] == 'P' && KeepsDcs(text);
    if (kept) out_ += sequence_ + "\033\\";
  }

  State state_ = State::kText;
  bool lead_ = false;       // of a character of two bytes
  bool in_string_ = false;  // an escape that may be its end was seen
  std::string sequence_, held_, out_;
};

}  // namespace

std::string WithoutQueries(std::string_view shown) {
  Filter filter(shown);
  for (const char c : shown) filter.Take(c);
  return filter.End();
}

}  // namespace muster::shim
