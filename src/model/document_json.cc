#include <array>
#include <optional>

#include "model/document_builder.h"

namespace muster::model {
namespace {

constexpr std::string_view kDigits = "0123456789";

// A strict reader of RFC 8259; any deviation ends it, because the YAML reader has the last word.
class JsonReader {
 public:
  JsonReader(std::string_view text, DocumentBuilder& builder) : text_(text), builder_(builder) {}

  bool Read() {
    SkipBlanks();
    builder_.StartDocument(Here());
    if (!Value()) return false;
    SkipBlanks();
    return at_ == text_.size();
  }

 private:
  Mark Here() const { return {line_, column_}; }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void Advance() {
    const auto byte = static_cast<unsigned char>(text_[at_++]);
    if (byte == '\n') {
      ++line_;
      column_ = 1;
    } else if ((byte & 0xC0U) != 0x80U) {
      ++column_;
    }
  }

  void SkipBlanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      Advance();
    }
  }

  bool Take(char wanted) {
    SkipBlanks();
    if (Peek() != wanted || at_ >= text_.size()) return false;
    Advance();
    return true;
  }

  bool Value() {
    SkipBlanks();
    switch (Peek()) {
      case '{':
        return Container('}');
      case '[':
        return Container(']');
      case '"':
        return String();
      default:
        return Word();
    }
  }

  // The builder bounds the depth, and with it this recursion.
  bool Container(char end) {
    builder_.Open(end == '}' ? DocKind::kMap : DocKind::kSequence, Here());
    Advance();
    if (Take(end)) {
      builder_.Close();
      return true;
    }
    do {
      SkipBlanks();
      if (end == '}' && (Peek() != '"' || !String() || !Take(':'))) return false;
      if (!Value()) return false;
    } while (Take(','));
    if (!Take(end)) return false;
    builder_.Close();
    return true;
  }

  bool Word() {
    const auto mark = Here();
    const auto start = at_;
    while (at_ < text_.size() &&
           std::string_view("{}[],:\" \t\r\n").find(text_[at_]) == text_.npos) {
      Advance();
    }
    const auto word = text_.substr(start, at_ - start);
    if (word == "null") {
      builder_.Null(mark);
      return true;
    }
    if (word != "true" && word != "false" && !IsNumber(word)) return false;
    builder_.Scalar(mark, std::string(word), false);
    return true;
  }

  static bool TakeDigits(std::string_view& word) {
    const auto length = std::min(word.find_first_not_of(kDigits), word.size());
    word.remove_prefix(length);
    return length > 0;
  }

  static bool IsNumber(std::string_view word) {
    if (word.starts_with('-')) word.remove_prefix(1);
    if (word.size() > 1 && word[0] == '0' && kDigits.find(word[1]) != kDigits.npos) return false;
    if (!TakeDigits(word)) return false;
    if (word.starts_with('.')) {
      word.remove_prefix(1);
      if (!TakeDigits(word)) return false;
    }
    if (word.starts_with('e') || word.starts_with('E')) {
      word.remove_prefix(1);
      if (word.starts_with('+') || word.starts_with('-')) word.remove_prefix(1);
      if (!TakeDigits(word)) return false;
    }
    return word.empty();
  }

  bool String() {
    const auto mark = Here();
    Advance();
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20) return false;
      if (text_[at_] == '\\') {
        if (!Escape(out)) return false;
      } else {
        out += text_[at_];
        Advance();
      }
    }
    if (at_ >= text_.size()) return false;
    Advance();
    builder_.Scalar(mark, std::move(out), true);
    return true;
  }

  bool Escape(std::string& out) {
    Advance();
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char name = Peek();
    if (at_ >= text_.size()) return false;
    Advance();
    if (name != 'u') {
      const auto index = kNames.find(name);
      if (index == kNames.npos) return false;
      out += kMeant[index];
      return true;
    }
    auto code = Hex();
    if (!code || (*code >= 0xDC00 && *code < 0xE000)) return false;
    if (*code >= 0xD800 && *code < 0xDC00) {
      if (text_.substr(at_, 2) != "\\u") return false;
      Advance();
      Advance();
      const auto low = Hex();
      if (!low || *low < 0xDC00 || *low >= 0xE000) return false;
      code = 0x10000 + ((*code - 0xD800) << 10) + (*low - 0xDC00);
    }
    AppendUtf8(*code, out);
    return true;
  }

  std::optional<unsigned> Hex() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i) {
      constexpr std::string_view kHex = "0123456789abcdefABCDEF";
      const auto index = at_ < text_.size() ? kHex.find(text_[at_]) : kHex.npos;
      if (index == kHex.npos) return std::nullopt;
      value = value * 16 + static_cast<unsigned>(index < 16 ? index : index - 6);
      Advance();
    }
    return value;
  }

  static void AppendUtf8(unsigned code, std::string& out) {
    const auto tail = [&](unsigned shift) {
      out += static_cast<char>(0x80U | ((code >> shift) & 0x3FU));
    };
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0U | (code >> 6));
      tail(0);
    } else if (code < 0x10000) {
      out += static_cast<char>(0xE0U | (code >> 12));
      tail(6);
      tail(0);
    } else {
      out += static_cast<char>(0xF0U | (code >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  std::string_view text_;
  DocumentBuilder& builder_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 1;
};

}  // namespace

bool ParseJson(std::string_view text, DocumentBuilder& builder) {
  return JsonReader(text, builder).Read();
}

}  // namespace muster::model
