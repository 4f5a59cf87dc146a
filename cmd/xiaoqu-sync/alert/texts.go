package alert

// texts are all words of one language. In them {resources}, {resource}, {code},
// {detail}, {classes}, {since} and {limit} are filled in.
type texts struct {
	prefix       string // before every title, so that people see whose message it is
	colon, comma string
	again        string // after the title of a reminder
	feishu       string // how Feishu calls the language
	labels       labels
	classes      map[Class]wording
	codes        map[string]wording // what a code says better than its class
}

// labels stand before the lines of a robot's message.
type labels struct{ what, meaning, next, code, request, since, host, from string }

// wording is what to say about a class or a code.
type wording struct{ title, what, meaning, next string }

// wording is the class's, with what the code says better.
func (t texts) wording(c Class, code string) wording {
	w := t.classes[c]
	better := t.codes[code]
	if better.what != "" {
		w.what = better.what
	}
	if better.meaning != "" {
		w.meaning = better.meaning
	}
	if better.next != "" {
		w.next = better.next
	}
	return w
}

// textsIn are the texts in a language; any but "en" is Chinese.
func textsIn(language string) texts {
	if language == "en" {
		return english()
	}
	return chinese()
}
