require ["fileinto", "imapflags"];
if address :is "to" "kasse@gartenverein.example" {
    addflag "\\Flagged";
    fileinto "Kasse";
}
