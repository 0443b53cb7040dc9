require ["vacation"];
vacation :days 7 "Der Vorstand trifft sich am ersten Mittwoch im Monat und antwortet dann.";
